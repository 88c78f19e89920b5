"""Permissions: what is refused, which option permits it, what is only labelled, and which labels remain."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import UsageError
from hybrid.plugins.registry import load
from hybrid.plugins.weights import provenance_of
from hybrid.running import permissions
from hybrid.running.permissions import Caveat
from hybrid.tool import Provenance, Tool

LEARNED = {"depth": "learned:1:abc"}


def tool(*trained_on: str, non_commercial: bool = False, **changes: Any) -> Tool:
    """Return the depth tool, whose learned backend has the default weights `a/b` and a larger alternative `a/c`."""
    real: Tool = load("tools", "depth")
    learned = real.backend("learned")
    assert learned is not None
    values = (Provenance("a/b", "CC BY-NC 4.0", trained_on, non_commercial), Provenance("a/c", "MIT", ("SA-1B",)))
    card = replace(learned, weights="a/b", provenances=values, **changes)
    return replace(real, card=replace(real.card, backends=(card,)))


def closed(
    item: Tool, sources: tuple[str, ...] = ("COCO-FreeView", "DIW"), weights: Mapping[str, str] | None = None
) -> tuple[Caveat, ...]:
    return permissions.closed([item], LEARNED, weights or {}, sources)


def test_a_run_that_saw_the_data_is_refused_with_the_list() -> None:
    result = closed(tool("VQAv2", "MegaDepth", non_commercial=True))
    assert result == (
        Caveat("overlap", "depth", "trained on VQAv2, which may share images with COCO-FreeView"),
        Caveat("non-commercial", "depth", "licence CC BY-NC 4.0"),
    )
    with pytest.raises(UsageError) as caught:
        permissions.check(result, ())
    assert str(caught.value).splitlines() == [
        "this run needs your permission to use these weights:",
        "  depth: trained on VQAv2, which may share images with COCO-FreeView (--allow overlap)",
        "  depth: licence CC BY-NC 4.0 (--allow non-commercial)",
    ]


@pytest.mark.parametrize(
    ("allowed", "still_closed"), [(("overlap",), "--allow non-commercial"), (("non-commercial",), "--allow overlap")]
)
def test_one_opened_gate_does_not_open_the_other(allowed: tuple[str, ...], still_closed: str) -> None:
    with pytest.raises(UsageError, match=still_closed) as caught:
        permissions.check(closed(tool("DIW", non_commercial=True)), allowed)
    assert f"(--allow {allowed[0]})" not in str(caught.value)


def test_unknown_weights_are_labelled_and_not_refused(tmp_path: Path) -> None:
    for location in (str(tmp_path), "somebody/else"):
        result = closed(tool("DIW", non_commercial=True), weights={"depth": location})
        assert result == (Caveat("unknown training data and licence", "depth", f"{location} is not on any card"),)
        assert permissions.check(result, ()) == ("unknown training data and licence: depth",)
        assert permissions.check(result, ("overlap", "non-commercial")) == ("unknown training data and licence: depth",)


def test_a_collection_nobody_heard_of_is_labelled() -> None:
    result = closed(tool("MegaDepth", "my photographs", "his"))
    assert result == (Caveat("unknown training data", "depth", "my photographs, his"),)
    assert [finding.gate for finding in closed(tool("COCO", "my photographs"))] == ["overlap", "unknown training data"]


def test_a_backend_without_weights_of_its_own_closes_nothing() -> None:
    bare = tool("DIW")
    learned = bare.backend("learned")
    assert learned is not None
    card = replace(learned, weights=None, provenances=())
    assert closed(replace(bare, card=replace(bare.card, backends=(card,)))) == ()


def test_a_folder_is_known_by_its_place_in_the_hubs_cache_only(tmp_path: Path) -> None:
    card = tool("DIW").backend("learned")
    assert card is not None
    cached = tmp_path / "models--a--c" / "snapshots" / "0123"
    by_label = tmp_path / "a" / "c"
    for folder in (cached, by_label):
        folder.mkdir(parents=True)
    assert provenance_of(card, str(cached)) == Provenance("a/c", "MIT", ("SA-1B",))
    assert provenance_of(card, str(by_label)) is None
    assert provenance_of(card, "A/C") == Provenance("a/c", "MIT", ("SA-1B",))
    assert provenance_of(card, "a/d") is None
