"""Which kept findings are found without whoever made them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ServiceOptions
from hybrid.images import ImageStore
from hybrid.serving.cache import FindingCache
from hybrid.serving.kept import KeptFindings
from hybrid.serving.loader import Answering
from hybrid.serving.service import ToolService
from hybrid.tool import Need, Tool
from hybrid.types import Finding, ImageRef

CLASSICAL = ServiceOptions("classical", threads=1)
SEED = 3


@pytest.fixture
def cache(tmp_path: Path) -> FindingCache:
    return FindingCache(tmp_path / "findings", ImageStore(tmp_path / "images"))


async def made(cache: FindingCache, tool: Tool, ref: ImageRef, args: Any) -> Finding:
    service = ToolService(cache.store, cache, CLASSICAL)
    found = await service.call(tool, args, [ref], SEED)
    service.close()
    return found


async def test_of_a_tool_with_weights_only_who_has_loaded_it_can_tell_the_key(fakes: Any, cache: FindingCache) -> None:
    plain, network = fakes.CountingBackend(draw=True), fakes.CountingBackend()
    tool = fakes.counter(network, kind="learned", fallback=plain)
    (ref,) = fakes.refs(cache.store, 1)
    found = await made(cache, tool, ref, fakes.NumberArgs(number=4))
    kept = KeptFindings(cache, ServiceOptions("auto"))
    for answering, seen in (
        (None, None),
        (Answering("learned", "1", "cpu"), None),
        (Answering("classical", "8", "cpu"), None),
        (Answering("classical", "7", "cuda"), None),
        (Answering("classical", "7", "cpu"), found),
    ):
        kept.answering |= {} if answering is None else {"counter": answering}
        assert kept.find(tool, fakes.NumberArgs(number=4), [ref], SEED) == seen
    assert KeptFindings(cache, CLASSICAL).find(tool, fakes.NumberArgs(number=4), [ref], SEED) == found


async def test_another_request_is_not_found(fakes: Any, cache: FindingCache) -> None:
    tool = fakes.counter(fakes.CountingBackend(draw=True))
    ref, other = fakes.refs(cache.store, 1, 2)
    found, args = await made(cache, tool, ref, fakes.NumberArgs(number=4)), fakes.NumberArgs(number=4)
    kept = KeptFindings(cache, CLASSICAL)
    assert kept.find(tool, args, [ref], SEED) == found
    assert kept.find(tool, args, [ref], SEED + 1) is None
    assert kept.find(tool, fakes.NumberArgs(number=5), [ref], SEED) is None
    assert kept.find(tool, args, [other], SEED) is None
    assert kept.find(tool, args, [], SEED) is None
    assert KeptFindings(cache, replace(CLASSICAL, pictures="png")).find(tool, args, [ref], SEED) is None
    assert KeptFindings(FindingCache(None, cache.store), CLASSICAL).find(tool, args, [ref], SEED) is None
    cache.store.path(found.images[0].image.sha256).unlink()
    assert kept.find(tool, args, [ref], SEED) is None


async def test_what_a_tool_needs_is_part_of_the_key(fakes: Any, cache: FindingCache) -> None:
    (ref,) = fakes.refs(cache.store, 1)
    kept = KeptFindings(cache, CLASSICAL)
    for needs in (Need("markers", lambda args: {}), Need("markers", lambda args: None)):
        tool = fakes.counter(fakes.CountingBackend(), needs=(needs,))
        found = await made(cache, tool, ref, fakes.NumberArgs())
        assert kept.find(tool, fakes.NumberArgs(), [ref], SEED) == found
    absent = fakes.counter(fakes.CountingBackend(), needs=(Need("markers", lambda args: {"marks": ["A"]}),))
    assert kept.find(absent, fakes.NumberArgs(), [ref], SEED) is None


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_tool_that_fails_over_its_needs_is_left_to_its_worker(
    fakes: Any, cache: FindingCache, error: type[BaseException]
) -> None:
    def fail(args: Any) -> None:
        raise error

    tool = fakes.counter(fakes.CountingBackend(), needs=(Need("markers", fail),))
    assert KeptFindings(cache, CLASSICAL).find(tool, fakes.NumberArgs(), fakes.refs(cache.store, 1), SEED) is None
