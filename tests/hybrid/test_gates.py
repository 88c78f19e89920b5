"""Gates: what is refused, what opens them, and the label that stays."""

from dataclasses import replace

import pytest

from hybrid import gates
from hybrid.benchmarks.base import BenchmarkCard
from hybrid.errors import UsageError
from hybrid.registry import load
from hybrid.tool import BackendCard, Tool

BENCH = BenchmarkCard("b", "B", "", "", ("COCO-FreeView", "DIW"), None, ("test",), {"t": 1})


def tool(trained_on: tuple[str, ...], *, non_commercial: bool) -> Tool:
    real: Tool = load("tools", "depth")
    learned = real.backend("learned")
    assert learned is not None
    card = replace(learned, trained_on=trained_on, non_commercial=non_commercial, licence="CC BY-NC 4.0")
    return replace(real, card=replace(real.card, backends=(card,)))


@pytest.mark.parametrize(
    ("trained", "source", "meets"),
    [
        ("COCO-FreeView", "COCO-FreeView", True),
        ("COCO", "COCO-FreeView", True),
        ("coco freeview", "COCO-FreeView", True),
        ("DIW (train)", "DIW", True),
        ("COCO-Search18", "COCO-FreeView", False),
        ("DIWAN", "DIW", False),
    ],
)
def test_overlap_reads_names(trained: str, source: str, meets: bool) -> None:
    assert bool(gates.overlap((trained,), (source,))) is meets


def test_a_run_that_saw_the_data_is_refused_with_the_list() -> None:
    found = gates.closed([tool(("DIW",), non_commercial=True)], {"depth": "learned:1:abc"}, BENCH)
    assert [finding.gate for finding in found] == ["overlap", "non-commercial"]
    with pytest.raises(UsageError, match=r"depth: trained on DIW.*--allow overlap") as caught:
        gates.check(found, ())
    assert "CC BY-NC 4.0" in str(caught.value)


def test_an_opened_gate_leaves_a_label() -> None:
    found = gates.closed([tool(("DIW",), non_commercial=False)], {"depth": "learned:1:abc"}, BENCH)
    assert gates.check(found, ("overlap",)) == ("overlap: depth",)


@pytest.mark.parametrize("in_use", ["classical:cues-1", "absent"])
def test_weights_that_do_not_answer_close_nothing(in_use: str) -> None:
    assert gates.closed([tool(("DIW",), non_commercial=True)], {"depth": in_use}, BENCH) == ()


def test_unchecked_weights_are_those_that_would_have_been_asked() -> None:
    tools = [load("tools", name) for name in ("depth", "detection", "motion", "saliency")]
    in_use = {"depth": "learned:1:abc", "detection": "learned:1:def", "motion": "classical:1", "saliency": "absent"}
    assert gates.unchecked(tools, in_use) == ("depth",)


def test_every_learned_backend_names_its_training_data_and_licence() -> None:
    from hybrid.registry import names

    for name in names("tools"):
        found: Tool = load("tools", name)
        learned: BackendCard | None = found.backend("learned")
        if learned is not None and learned.weights:
            assert learned.trained_on, name
            assert learned.licence, name
