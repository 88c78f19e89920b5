"""The tool service: what is computed, how often and in what company, and that one bad request costs no other."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.config import ServiceOptions
from hybrid.errors import DataError, ToolError, WeightsError
from hybrid.images import ImageStore
from hybrid.registry import load
from hybrid.serving.cache import FindingCache, key_of
from hybrid.serving.executor import ToolCall
from hybrid.serving.loader import BackendIdentity
from hybrid.serving.pipeline import ThreadExecutor
from hybrid.serving.service import ToolService
from hybrid.timing import Stopwatch
from hybrid.tool import Args, Need, Tool
from hybrid.types import Fault, Finding, StoredImage

Make = Callable[..., ToolService]
PATIENCE_S = 60.0
"""Longer than anything here takes, however busy the machine is."""


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images")


@pytest.fixture
def service(tmp_path: Path, store: ImageStore) -> Iterator[Make]:
    """`service(**options)` makes one over the same store and cache as the others.

    One that `keeps` nothing has no files to look into first: what is asked at once arrives at once.
    """
    made: list[ToolService] = []

    def make(*, keeps: bool = True, **options: Any) -> ToolService:
        cache = FindingCache(tmp_path / "findings" if keeps else None, store)
        made.append(ToolService(store, cache, ServiceOptions(**{"threads": 2, "coming_s": PATIENCE_S, **options})))
        return made[-1]

    yield make
    for one in made:
        one.close()


async def calls(
    fakes: Any, service: ToolService, tool: Tool, numbers: list[int], seed: int = 1
) -> list[Finding | BaseException]:
    refs = fakes.refs(service.store, seed)
    # Calls made while the code is hashed and the weights load would come one by one.
    await service._answering_for(tool)
    await service.executor.load(tool, Stopwatch(time.monotonic))
    asked = (service.call(tool, fakes.NumberArgs(number=number), refs) for number in numbers)
    return list(await asyncio.gather(*asked, return_exceptions=True))


def texts(found: list[Finding | BaseException]) -> list[str]:
    return [one.text.split(",")[0] if isinstance(one, Finding) else f"{type(one).__name__}: {one}" for one in found]


async def test_what_arrives_together_is_one_batch(fakes: Any, service: Make) -> None:
    backend = fakes.CountingBackend()
    found = await calls(fakes, service(keeps=False), fakes.counter(backend, batch=4), [1, 2, 3, 4, 5, 6])
    assert texts(found) == [f"number {n}" for n in range(1, 7)]
    assert backend.batches == [4, 2]


async def test_a_tool_without_batches_gets_one_request_each(fakes: Any, service: Make) -> None:
    backend = fakes.CountingBackend()
    await calls(fakes, service(), fakes.counter(backend), [1, 2, 3])
    assert backend.batches == [1, 1, 1]
    assert len(backend.setups) == 1


async def test_a_batched_answer_is_that_of_a_single_one(fakes: Any, service: Make, store: ImageStore) -> None:
    tool = fakes.counter(fakes.CountingBackend(), batch=8)
    several = service(backend="classical")
    refs = [fakes.refs(store, seed) for seed in range(5)]
    together = await asyncio.gather(*(several.call(tool, fakes.NumberArgs(), ref) for ref in refs))
    alone = ToolService(store, FindingCache(None, store), ServiceOptions())
    one_by_one = [await alone.call(tool, fakes.NumberArgs(), ref) for ref in refs]
    alone.close()
    assert list(together) == one_by_one
    assert len({finding.text for finding in one_by_one}) == 5


async def test_identical_requests_are_computed_once(fakes: Any, service: Make) -> None:
    backend = fakes.CountingBackend()
    one = service()
    found = await calls(fakes, one, fakes.counter(backend), [7] * 5)
    assert len({finding.text for finding in found if isinstance(finding, Finding)}) == 1
    assert (backend.batches, one.computed) == ([1], 1)


async def test_a_second_service_finds_it_in_the_cache(fakes: Any, service: Make) -> None:
    first, second = fakes.CountingBackend(draw=True), fakes.CountingBackend(draw=True)
    one, other = service(), service()
    before = await calls(fakes, one, fakes.counter(first), [7])
    after = await calls(fakes, other, fakes.counter(second), [7])
    assert before == after
    assert (second.batches, one.computed, other.computed) == ([], 1, 0)


@pytest.mark.parametrize(
    ("pictures", "kind", "made"),
    [("auto", "JPEG", "image/jpeg"), ("auto", "PNG", "image/png"), ("png", "JPEG", "image/png")],
)
async def test_a_crop_of_a_jpeg_is_one_unless_png_is_asked_for(
    fakes: Any, service: Make, pictures: str, kind: str, made: str
) -> None:
    one, crop = service(backend="classical", pictures=pictures), load("tools", "crop")
    image = one.store.put(fakes.encoded(fakes.pixels(1), kind), "x")
    ref, args = fakes.ImageRef("img:1", image), crop.parse({"box": {"x0": 2, "y0": 3, "x1": 12, "y1": 9}, "scale": 1})
    (part,) = (await one.call(crop, args, [ref])).images
    assert part.image.media_type == made
    again = await one.call(crop, crop.parse({"scale": 1}), [replace(part, name="img:1.1")])
    assert {one.image.media_type for one in again.images} == {made}
    # Lossless where it is a PNG, and near where it is not.
    away = np.abs(one.store.pixels(part.image).astype(int) - one.store.pixels(image)[3:9, 2:12]).max()
    assert away == 0 if made == "image/png" else 0 < away < 40


async def test_a_finding_with_pictures_of_another_kind_is_another_finding(fakes: Any, service: Make) -> None:
    backends = fakes.CountingBackend(), fakes.CountingBackend()
    for pictures, backend in zip(("auto", "png"), backends, strict=True):
        await calls(fakes, service(pictures=pictures), fakes.counter(backend), [7])
    assert [backend.batches for backend in backends] == [[1], [1]]


OTHER_PROCESS = """
import asyncio, sys
from pathlib import Path
from hybrid.serving.cache import FindingCache
from hybrid.images import ImageStore
from hybrid.registry import load
from hybrid.serving.executor import ToolCall
from hybrid.serving.loader import BackendIdentity
from hybrid.serving.pipeline import ThreadExecutor
from hybrid.serving.service import ServiceOptions, ToolService
from hybrid.types import ImageRef
root = Path(sys.argv[1])
store = ImageStore(root / "images")
service = ToolService(store, FindingCache(root / "findings", store), ServiceOptions("classical"))
refs = [ImageRef(f"img:{n}", store.put(Path(p).read_bytes(), p)) for n, p in enumerate(sys.argv[2:], 1)]
tool = load("tools", "jigsaw")
print(asyncio.run(service.call(tool, tool.args(), refs)).text)
service.close()
"""


@pytest.mark.system
async def test_another_process_finds_it_in_the_cache(fakes: Any, service: Make, tmp_path: Path) -> None:
    paths = [tmp_path / f"{place}.png" for place in range(3)]
    for path, piece in zip(paths, fakes.puzzle(1), strict=True):
        path.write_bytes(fakes.encoded(piece))
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    one = service(backend="classical")
    refs = [fakes.ImageRef(f"img:{n}", one.store.put(path.read_bytes(), "x")) for n, path in enumerate(paths, 1)]
    tool = load("tools", "jigsaw")
    found = await one.call(tool, tool.args(), refs)
    assert found.text == done.stdout.rstrip("\n")
    assert one.computed == 0


async def test_what_decides_a_finding_is_in_its_key(fakes: Any, service: Make, store: ImageStore) -> None:
    backend = fakes.CountingBackend()
    one, tool = service(), fakes.counter(backend, images=(1, 2))
    a, b = fakes.refs(store, 1, 2)
    for number, images, seed in (
        (1, (a,), 0),
        (2, (a,), 0),
        (1, (b,), 0),
        (1, (a, b), 0),
        (1, (b, a), 0),
        (1, (a,), 1),
    ):
        await one.call(tool, fakes.NumberArgs(number=number), images, seed)
    assert one.computed == 6
    renamed = [fakes.ImageRef("img:9", a.image)]
    await one.call(tool, fakes.NumberArgs(number=1), renamed, 0)
    assert one.computed == 6


async def test_one_bad_request_in_a_batch_costs_nobody_else(fakes: Any, service: Make) -> None:
    backend = fakes.CountingBackend()
    found = await calls(fakes, service(keeps=False), fakes.counter(backend, batch=4), [1, 13, 2, 14])
    assert texts(found) == [
        "number 1",
        "ToolError: 13 cannot be counted",
        "number 2",
        "ToolError: the tool failed: ZeroDivisionError: a defect",
    ]
    # How many came together, the machine decides; each of a batch that failed ran alone.
    assert backend.batches.count(1) >= 2


async def test_an_image_that_cannot_be_read_costs_nobody_else(fakes: Any, service: Make, store: ImageStore) -> None:
    one, tool = service(), fakes.counter(fakes.CountingBackend(), batch=2)
    gone = fakes.ImageRef("img:1", StoredImage("0" * 64, 4, 4, "image/png"))
    asked = [one.call(tool, fakes.NumberArgs(), refs) for refs in ((gone,), fakes.refs(store, 1))]
    bad, good = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(bad, DataError)
    assert isinstance(good, Finding)


async def test_a_backend_that_loses_a_finding_is_an_error_and_no_wait(fakes: Any, service: Make) -> None:
    for batch in (1, 4):
        backend = fakes.CountingBackend(lose=1)
        found = await calls(fakes, service(timeout_s=20), fakes.counter(backend, batch=batch), [1, 2])
        assert texts(found) == ["ToolError: the tool gave 0 findings for 1 requests"] * 2


@pytest.mark.parametrize("confidence", [-0.1, 1.01, float("nan")])
async def test_a_confidence_is_a_probability(fakes: Any, service: Make, confidence: float) -> None:
    backend = fakes.CountingBackend(confidence=confidence)
    (found,) = await calls(fakes, service(), fakes.counter(backend), [1])
    assert str(found) == f"the tool gave a confidence of {confidence}, which is outside 0..1"


async def test_a_failure_is_not_kept(fakes: Any, service: Make) -> None:
    backend = fakes.CountingBackend()
    one, tool = service(), fakes.counter(backend)
    assert texts(await calls(fakes, one, tool, [13])) == texts(await calls(fakes, one, tool, [13]))
    assert backend.batches == [1, 1]
    assert one.computed == 0


async def test_a_tool_that_takes_too_long_is_given_up_and_its_finding_kept(fakes: Any, service: Make) -> None:
    backend = fakes.CountingBackend()
    one, tool = service(timeout_s=0.05), fakes.counter(backend)
    (late,) = await calls(fakes, one, tool, [15])
    assert isinstance(late, ToolError)
    assert (str(late), late.fault) == ("counter did not answer within 0.05 s", Fault.TIMEOUT)
    backend.gate.set()
    other = service()
    assert other.cache.folder is not None
    while not list(other.cache.folder.rglob("*.json")):
        await asyncio.sleep(0.001)
    assert texts(await calls(fakes, other, tool, [15])) == ["number 15"]
    assert (other.computed, backend.batches) == (0, [1])


@pytest.mark.parametrize(
    ("images", "count", "message"), [((1, 1), 2, "takes 1 images, not 2"), ((2, 4), 1, "takes 2 to 4 images, not 1")]
)
async def test_the_number_of_images_is_checked(
    fakes: Any, service: Make, store: ImageStore, images: tuple[int, int], count: int, message: str
) -> None:
    tool = fakes.counter(fakes.CountingBackend(), images=images)
    with pytest.raises(ToolError, match=message) as caught:
        await service().call(tool, fakes.NumberArgs(), fakes.refs(store, *range(count)))
    assert caught.value.fault is Fault.BAD_ARGUMENTS


async def test_what_a_tool_needs_is_found_first_on_every_image(fakes: Any, service: Make, store: ImageStore) -> None:
    backend = fakes.CountingBackend()
    tool = fakes.counter(backend, images=(1, 2), needs=(Need("markers", lambda _: {}),))
    one = service(backend="classical")
    found = await one.call(tool, fakes.NumberArgs(number=1), fakes.refs(store, 1, 2))
    (needs,) = backend.needs
    assert set(needs) == {"markers"}
    assert len(needs["markers"]) == 2
    assert {finding.backend for finding in needs["markers"]} == {"classical"}
    assert not any(finding.images for finding in needs["markers"])
    assert isinstance(found, Finding)
    assert one.computed == 3


async def test_arguments_that_a_needed_tool_does_not_take_are_an_error_of_the_call(
    fakes: Any, service: Make, store: ImageStore
) -> None:
    tool = fakes.counter(fakes.CountingBackend(), needs=(Need("depth", lambda _: {"points": 3}),))
    with pytest.raises(ToolError, match="wrong arguments for depth: points: ") as caught:
        await service(backend="classical").call(tool, fakes.NumberArgs(), fakes.refs(store, 1))
    assert caught.value.fault is Fault.BAD_ARGUMENTS


async def test_what_another_backend_found_in_the_meantime_is_not_kept(
    fakes: Any, service: Make, store: ImageStore, tmp_path: Path
) -> None:
    one, weights = service(), tmp_path / "weights"
    pipeline = one.executor
    assert isinstance(pipeline, ThreadExecutor)
    weights.mkdir()

    def taken_away(_: Args) -> None:
        # As when it is evicted while the tools that it needs are asked, and its weights are gone by then.
        assert pipeline.loader.loaded == ("counter",)
        pipeline.loader._loaded.clear()
        weights.rmdir()

    learned, fallback = fakes.CountingBackend(), fakes.CountingBackend()
    needs = (Need("markers", taken_away),)
    tool = fakes.counter(learned, kind="learned", weights=str(weights), needs=needs, fallback=fallback)
    with pytest.raises(ToolError, match="were taken away while it answered"):
        await one.call(tool, fakes.NumberArgs(), fakes.refs(store, 1))
    assert (learned.batches, fallback.batches) == ([], [1])
    assert one.cache.folder is not None
    assert not list(one.cache.folder.rglob("*.json"))


async def test_pictures_are_stored_and_say_of_which_image(fakes: Any, service: Make, store: ImageStore) -> None:
    found = await service().call(
        fakes.counter(fakes.CountingBackend(draw=True)), fakes.NumberArgs(), fakes.refs(store, 3)
    )
    (picture,) = found.images
    assert (picture.parent, picture.image.width, picture.image.height) == ("img:1", 24, 20)
    assert (store.pixels(picture.image) == 255 - fakes.pixels(3)).all()


async def test_overlays_are_drawn_only_where_somebody_looks(
    fakes: Any, service: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, crop = service(backend="classical"), load("tools", "crop")
    asked = crop, crop.parse({"grid": {"rows": 1, "columns": 2}}), fakes.refs(one.store, 1)
    with monkeypatch.context() as patched:
        patched.setattr("tools.crop.draw_grid", lambda *_: pytest.fail("drawn"))
        plain = await one.call(*asked, overlays=False)
    seen = await one.call(*asked)
    # What was found without overlays serves no call with them.
    assert one.computed == 2
    assert [ref.box is None for ref in seen.images] == [True, False, False]
    assert plain == replace(seen, images=seen.images[1:])
    assert await one.call(*asked, overlays=False) == plain
    assert one.computed == 2


async def test_a_finding_with_overlays_serves_a_call_without(fakes: Any, service: Make) -> None:
    one, tool = service(), fakes.counter(fakes.CountingBackend(draw=True))
    seen = await one.call(tool, fakes.NumberArgs(), fakes.refs(one.store, 3))
    plain = await one.call(tool, fakes.NumberArgs(), fakes.refs(one.store, 3), overlays=False)
    assert one.computed == len(seen.images) == 1
    assert plain == replace(seen, images=())


async def test_a_finding_whose_picture_is_gone_is_made_again(fakes: Any, service: Make, store: ImageStore) -> None:
    backend = fakes.CountingBackend(draw=True)
    one, tool = service(), fakes.counter(backend)
    found = await one.call(tool, fakes.NumberArgs(), fakes.refs(store, 3))
    store.path(found.images[0].image.sha256).unlink()
    assert await one.call(tool, fakes.NumberArgs(), fakes.refs(store, 3)) == found
    assert one.computed == 2
    assert store.read(found.images[0].image)


async def test_a_damaged_cache_entry_is_made_again(fakes: Any, service: Make, store: ImageStore) -> None:
    one, tool = service(), fakes.counter(fakes.CountingBackend())
    found = await one.call(tool, fakes.NumberArgs(), fakes.refs(store, 3))
    assert one.cache.folder is not None
    (entry,) = one.cache.folder.rglob("*.json")
    entry.write_text(entry.read_text()[:20])
    assert await one.call(tool, fakes.NumberArgs(), fakes.refs(store, 3)) == found
    assert one.computed == 2


async def test_auto_falls_back_with_a_notice_when_weights_are_absent(
    fakes: Any, service: Make, store: ImageStore
) -> None:
    learned, classical = fakes.CountingBackend(), fakes.CountingBackend()
    tool = fakes.counter(learned, kind="learned", weights="/nowhere/at/all", fallback=classical)
    one = service(backend="auto")
    for seed in (1, 2):
        found = await one.call(tool, fakes.NumberArgs(), fakes.refs(store, seed))
        assert (found.backend, found.version) == ("classical", "7")
    assert learned.setups == []
    (notice,) = one.notices
    assert notice.startswith("counter: weights absent: there is no directory /nowhere/at/all;")
    assert notice.endswith("the weight-free backend answers instead")


@pytest.mark.parametrize("options", [{"backend": "learned"}, {"weights": {"counter": "/nowhere/else"}}])
async def test_weights_that_were_asked_for_and_are_absent_are_an_error(
    fakes: Any, service: Make, store: ImageStore, options: dict[str, Any]
) -> None:
    classical = fakes.CountingBackend()
    tool = fakes.counter(fakes.CountingBackend(), kind="learned", weights="/nowhere/at/all", fallback=classical)
    one = service(**options)
    for _ in range(2):
        with pytest.raises(WeightsError, match="there is no directory /nowhere"):
            await one.call(tool, fakes.NumberArgs(), fakes.refs(store, 1))
    assert (classical.setups, one.notices) == ([], [])


async def test_a_learned_backend_gets_its_weights_and_device_and_one_thread(
    fakes: Any, service: Make, store: ImageStore, tmp_path: Path
) -> None:
    learned = fakes.CountingBackend()
    tool = fakes.counter(learned, kind="learned", weights="/nowhere", fallback=fakes.CountingBackend())
    one = service(weights={"counter": str(tmp_path)}, device="cpu")
    asked = (one.call(tool, fakes.NumberArgs(number=n), fakes.refs(store, 1)) for n in range(6))
    found = await asyncio.gather(*asked)
    assert {finding.backend for finding in found} == {"learned"}
    assert learned.setups == [("cpu", str(tmp_path))]
    assert len(learned.threads) == 1


async def test_weight_free_backends_run_in_several_threads_at_once(fakes: Any, service: Make) -> None:
    together = threading.Barrier(3)
    backend = fakes.CountingBackend(takes=lambda: together.wait(PATIENCE_S))
    found = await calls(fakes, service(threads=3), fakes.counter(backend), [1, 2, 3])
    assert texts(found) == ["number 1", "number 2", "number 3"]
    assert len(backend.threads) == 3


async def test_classical_is_refused_where_there_is_none(fakes: Any, service: Make, store: ImageStore) -> None:
    tool = fakes.counter(fakes.CountingBackend(), kind="learned", weights="/nowhere")
    with pytest.raises(ToolError, match="counter has no weight-free backend; give weights with --weights counter="):
        await service(backend="classical").call(tool, fakes.NumberArgs(), fakes.refs(store, 1))


def test_keys_do_not_depend_on_the_order_of_a_mapping() -> None:
    assert key_of("t", {"a": 1, "b": [1, 2]}) == key_of("t", {"b": [1, 2], "a": 1})
    assert key_of("t", {"a": 1, "b": [1, 2]}) != key_of("t", {"a": 1, "b": [2, 1]})
    assert key_of("ab", "c") != key_of("a", "bc")


class NotReached:
    """An executor of another process that answers with what it is given, and counts what it is asked."""

    timeout_s = float("inf")

    def __init__(self, answering: BackendIdentity) -> None:
        self.notices: list[str] = []
        self.asked: list[str] = []
        self._answering = answering

    async def load(self, tool: Tool, watch: Stopwatch) -> BackendIdentity:
        self.asked.append("load")
        return self._answering

    async def need_args(self, *_: Any) -> None:
        self.asked.append("need")

    async def find(self, call: ToolCall, watch: Stopwatch) -> tuple[Finding, BackendIdentity]:
        self.asked.append("find")
        raise ToolError("it is asked", Fault.TOOL_ERROR)

    def warm(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("answering", "asked"),
    [
        (BackendIdentity("classical", "7", "cpu"), ["load"]),
        (BackendIdentity("classical", "8", "cpu"), ["load", "find"]),
        (BackendIdentity("classical", "7", "cuda"), ["load", "find"]),
        (BackendIdentity("learned", "1", "cpu"), ["load", "find"]),
    ],
)
async def test_of_a_tool_with_weights_the_executor_says_whose_findings_are_looked_up(
    fakes: Any, service: Make, answering: BackendIdentity, asked: list[str]
) -> None:
    plain, network = fakes.CountingBackend(draw=True), fakes.CountingBackend()
    tool = fakes.counter(network, kind="learned", fallback=plain)
    made = service(backend="classical")
    refs, args = fakes.refs(made.store, 1), fakes.NumberArgs(number=4)
    finding = await made.call(tool, args, refs)
    executor = NotReached(answering)
    other = ToolService(made.store, made.cache, ServiceOptions("auto"), executor=executor)
    for _ in range(2 if asked == ["load"] else 1):
        if "find" in asked:
            with pytest.raises(ToolError, match="it is asked"):
                await other.call(tool, args, refs)
        else:
            assert await other.call(tool, args, refs) == finding
    other.close()
    assert executor.asked == asked
    assert other.computed == 0


async def test_each_part_of_a_request_is_part_of_its_key(fakes: Any, service: Make, store: ImageStore) -> None:
    tool = fakes.counter(fakes.CountingBackend(draw=True))
    ref, another = fakes.refs(store, 1, 2)
    one, args = service(backend="classical"), fakes.NumberArgs(number=4)
    finding = await one.call(tool, args, [ref], 3)

    async def is_kept(given: Any = args, images: Any = (ref,), seed: int = 3, **options: Any) -> bool:
        other = service(backend="classical", **options)
        found = await other.call(tool, given, images, seed)
        return other.computed == 0 and found == finding

    assert await is_kept()
    assert not await is_kept(seed=4)
    assert not await is_kept(given=fakes.NumberArgs(number=5))
    assert not await is_kept(images=(another,))
    assert not await is_kept(pictures="png")
    assert not await is_kept(keeps=False)


async def test_what_a_tool_needs_is_part_of_its_key(fakes: Any, service: Make, store: ImageStore) -> None:
    refs, args = fakes.refs(store, 1), fakes.NumberArgs()
    for place, needs in enumerate((Need("markers", lambda _: {}), Need("markers", lambda _: None))):
        tool = fakes.counter(fakes.CountingBackend(), needs=(needs,))
        first, second = service(backend="classical"), service(backend="classical")
        finding = await first.call(tool, args, refs)
        assert first.computed == (2, 1)[place]
        assert await second.call(tool, args, refs) == finding
        assert second.computed == 0


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
async def test_a_tool_that_fails_over_its_needs_costs_its_own_call(
    fakes: Any, service: Make, store: ImageStore, error: type[BaseException]
) -> None:
    def fail(args: Any) -> None:
        raise error

    tool = fakes.counter(fakes.CountingBackend(), needs=(Need("markers", fail),))
    with pytest.raises(ToolError, match=f"the tool failed: {error.__name__}"):
        await service(backend="classical").call(tool, fakes.NumberArgs(), fakes.refs(store, 1))
