"""Gates: what is refused, what opens them, what is only labelled, and the labels that stay."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from hybrid.benchmarks.card import BenchmarkCard, ImageSource
from hybrid.errors import UsageError
from hybrid.registry import load, names
from hybrid.running import permissions
from hybrid.running.permissions import Caveat
from hybrid.tool import BackendCard, Provenance, Tool
from hybrid.tool.image_sets import is_known
from hybrid.weights import provenance_of, weights_in_use

LEARNED = {"depth": "learned:1:abc"}
SOURCES = ("COCO-FreeView", "DIW")


def tool(*trained_on: str, non_commercial: bool = False, **changes: Any) -> Tool:
    """The depth tool, whose learned backend knows its default weights `a/b` and a larger one `a/c`."""
    real: Tool = load("tools", "depth")
    learned = real.backend("learned")
    assert learned is not None
    known = (
        Provenance("a/b", "CC BY-NC 4.0", trained_on, non_commercial),
        Provenance("a/c", "MIT", ("SA-1B",)),
    )
    card = replace(learned, weights="a/b", provenances=known, **changes)
    return replace(real, card=replace(real.card, backends=(card,)))


def closed(
    one: Tool, sources: tuple[str, ...] = SOURCES, weights: Mapping[str, str] | None = None
) -> tuple[Caveat, ...]:
    return permissions.closed([one], LEARNED, weights or {}, sources)


@pytest.mark.parametrize(
    ("trained", "seen"),
    [
        (("COCO-FreeView",), ("COCO-FreeView",)),
        (("COCO",), ("COCO-FreeView",)),
        (("VQAv2", "DIW (train)"), ("COCO-FreeView", "DIW")),
        (("DIWAN",), ()),
        ((), ()),
    ],
)
def test_overlap_follows_where_images_come_from(trained: tuple[str, ...], seen: tuple[str, ...]) -> None:
    assert permissions.overlap(trained, SOURCES) == seen


def test_a_run_that_saw_the_data_is_refused_with_the_list() -> None:
    found = closed(tool("VQAv2", "MegaDepth", non_commercial=True))
    assert found == (
        Caveat("overlap", "depth", "trained on VQAv2, which may share images with COCO-FreeView"),
        Caveat("non-commercial", "depth", "licence CC BY-NC 4.0"),
    )
    with pytest.raises(UsageError) as caught:
        permissions.check(found, ())
    assert str(caught.value).splitlines() == [
        "weights that this run should not use unawares:",
        "  depth: trained on VQAv2, which may share images with COCO-FreeView (--allow overlap)",
        "  depth: licence CC BY-NC 4.0 (--allow non-commercial)",
    ]


def test_every_collection_that_meets_is_named() -> None:
    (finding,) = closed(tool("VQAv2", "MegaDepth", "DIW", "LVIS"))
    assert finding.reason == "trained on VQAv2, DIW, LVIS, which may share images with COCO-FreeView, DIW"


@pytest.mark.parametrize(
    ("allowed", "left"), [(("overlap",), "--allow non-commercial"), (("non-commercial",), "--allow overlap")]
)
def test_one_opened_gate_does_not_open_the_other(allowed: tuple[str, ...], left: str) -> None:
    with pytest.raises(UsageError, match=left) as caught:
        permissions.check(closed(tool("DIW", non_commercial=True)), allowed)
    assert f"(--allow {allowed[0]})" not in str(caught.value)


def test_opened_gates_leave_labels() -> None:
    found = closed(tool("DIW", non_commercial=True))
    assert permissions.check(found, ("overlap", "non-commercial")) == ("non-commercial: depth", "overlap: depth")
    assert permissions.check(closed(tool("DIW")), ("overlap",)) == ("overlap: depth",)
    assert permissions.check((), ("overlap",)) == ()


def test_a_label_names_every_tool_once() -> None:
    found = [Caveat("overlap", name, why) for name in ("ocr", "depth") for why in ("x", "y")]
    assert permissions.check(found, ("overlap",)) == ("overlap: depth, ocr",)
    mixed = [Caveat("overlap", "depth", "x"), Caveat("unknown training data", "ocr", "y")]
    assert permissions.check(mixed, ("overlap",)) == ("overlap: depth", "unknown training data: ocr")
    kinds = (*get_args(permissions.Gate), *get_args(permissions.Doubt))
    many = [Caveat(kind, name, "x") for kind in reversed(kinds) for name in ("ocr", "depth", "crop", "attributes")]
    expected = tuple(f"{kind}: attributes, crop, depth, ocr" for kind in sorted(kinds))
    assert permissions.check(many, get_args(permissions.Gate)) == expected


def test_clean_weights_close_nothing_and_say_nothing() -> None:
    assert closed(tool("MegaDepth", "Hypersim")) == ()


@pytest.mark.parametrize("in_use", [{"depth": "classical:cues-1"}, {"depth": "absent"}, {}])
def test_weights_that_do_not_answer_close_nothing(in_use: Mapping[str, str]) -> None:
    assert permissions.closed([tool("DIW", non_commercial=True)], in_use, {}, SOURCES) == ()


def test_a_tool_that_answers_does_not_hide_the_next() -> None:
    crop: Tool = load("tools", "crop")
    found = permissions.closed([crop, tool("DIW")], {"crop": "classical:1", **LEARNED}, {}, SOURCES)
    assert [finding.tool for finding in found] == ["depth"]
    one = tool("DIW")
    other = replace(one, card=replace(one.card, name="other"))
    found = permissions.closed([one, other], {**LEARNED, "other": LEARNED["depth"]}, {}, SOURCES)
    assert [finding.tool for finding in found] == ["depth", "other"]


def test_the_checkpoint_decides_not_the_backend() -> None:
    one = tool("DIW", non_commercial=True)
    assert closed(one, weights={"depth": "a/c"}) == ()
    assert [f.gate for f in closed(one, ("SA-1B",), {"depth": "a/c"})] == ["overlap"]
    assert closed(one, weights={"other": "a/c"}) == closed(one)


def test_unknown_weights_are_labelled_and_not_refused(tmp_path: Path) -> None:
    for where in (str(tmp_path), "somebody/else"):
        found = closed(tool("DIW", non_commercial=True), weights={"depth": where})
        assert found == (Caveat("unknown training data and licence", "depth", f"no card knows {where}"),)
        assert permissions.check(found, ()) == ("unknown training data and licence: depth",)
        assert permissions.check(found, ("overlap", "non-commercial")) == ("unknown training data and licence: depth",)


def test_known_weights_without_known_images_are_labelled() -> None:
    found = closed(tool(non_commercial=True))
    assert found[1:] == (Caveat("unknown training data", "depth", "of a/b"),)
    assert [finding.gate for finding in found] == ["non-commercial", "unknown training data"]
    assert permissions.check(found, ("non-commercial",)) == ("non-commercial: depth", "unknown training data: depth")


def test_a_collection_nobody_heard_of_is_labelled() -> None:
    found = closed(tool("MegaDepth", "my photographs", "his"))
    assert found == (Caveat("unknown training data", "depth", "my photographs, his"),)
    assert [finding.gate for finding in closed(tool("COCO", "my photographs"))] == ["overlap", "unknown training data"]


def test_nobody_has_seen_generated_questions() -> None:
    assert closed(tool("DIW"), sources=()) == ()
    assert [f.gate for f in closed(tool("DIW", non_commercial=True), sources=())] == ["non-commercial"]


def test_a_backend_without_weights_of_its_own_closes_nothing() -> None:
    bare = tool("DIW")
    learned = bare.backend("learned")
    assert learned is not None
    card = replace(learned, weights=None, provenances=())
    assert closed(replace(bare, card=replace(bare.card, backends=(card,)))) == ()


def test_doubts_and_gates_are_two_lists() -> None:
    assert set(get_args(permissions.Doubt)) == permissions.DOUBTS
    assert permissions.DOUBTS.isdisjoint(get_args(permissions.Gate))
    assert get_args(permissions.Gate) == ("overlap", "non-commercial", "blind", "toolless", "partial"), (
        "what --allow offers"
    )


def test_unchecked_weights_are_those_that_would_have_been_asked() -> None:
    tools = [load("tools", name) for name in ("depth", "forensics", "relation", "motion", "saliency")]
    in_use = dict.fromkeys(("depth", "forensics", "relation"), "learned:1:abc")
    in_use |= {"motion": "classical:1", "saliency": "absent"}
    assert permissions.unchecked(tools, in_use) == ("depth",), "forensics and relation ask no known answers"
    assert permissions.unchecked(tools, {}) == ()


def learned_card(name: str) -> BackendCard:
    one: Tool = load("tools", name)
    card = one.backend("learned")
    assert card is not None
    return card


@pytest.mark.parametrize(
    ("name", "where", "licence", "non_commercial"),
    [
        ("depth", "depth-anything/Depth-Anything-V2-Small-hf", "Apache-2.0", False),
        ("depth", "depth-anything/Depth-Anything-V2-Base-hf", "CC-BY-NC-4.0", True),
        ("depth", "depth-anything/Depth-Anything-V2-Large-hf", "CC-BY-NC-4.0", True),
        ("depth", "LiheYoung/depth-anything-large-hf", "Apache-2.0", False),
        ("depth", "apple/DepthPro-hf", "Apple Machine Learning Research Model licence, research only", True),
        ("correspondence", "zju-community/efficientloftr", "Apache-2.0", False),
        ("motion", "magic-leap-community/superglue_outdoor", "Magic Leap, non-commercial research", True),
        ("segmentation", "facebook/sam2.1-hiera-large", "Apache-2.0", False),
        ("saliency", "facebook/dinov3-vits16-pretrain-lvd1689m", "DINOv3 License", False),
    ],
)
def test_sizes_of_one_network_have_terms_of_their_own(
    name: str, where: str, licence: str, *, non_commercial: bool
) -> None:
    known = provenance_of(learned_card(name), where)
    assert known is not None
    assert (known.licence, known.non_commercial) == (licence, non_commercial)


@pytest.mark.parametrize(
    ("benchmark", "task", "name", "closes"),
    [
        ("actiview", "counting", "segmentation", True),
        ("actiview", "counting", "depth", True),
        ("actiview", "counting", "correspondence", False),
        ("mm_sap", "BeyondVisQA", "scanpath", True),
        ("mm_sap", "BeyondVisQA", "detection", True),
        ("mm_sap", "KnowVisQA", "detection", False),
        ("hvsbench", "Q9", "detection", True),
        ("hvsbench", "Q1", "scanpath", True),
        ("blink", "Counting", "detection", True),
        ("blink", "Object_Localization", "detection", True),
        ("blink", "Relative_Depth", "depth", False),
        ("blink", "Visual_Correspondence", "correspondence", False),
        ("blink", "Semantic_Correspondence", "semantic_correspondence", True),
        ("blink", "Visual_Similarity", "similarity", False),
        ("mvp_bench", "yes_no", "detection", False),
    ],
)
def test_the_default_weights_on_the_benchmarks(benchmark: str, task: str, name: str, *, closes: bool) -> None:
    card: BenchmarkCard = load("hybrid.benchmarks", benchmark).card
    one: Tool = load("tools", name)
    found = permissions.closed([one], {name: "learned:1:abc"}, {}, card.sources_of((task,)))
    assert ("overlap" in {finding.gate for finding in found}) == closes


def test_the_sources_of_a_task_are_its_own_and_those_of_all() -> None:
    sources = (ImageSource("A", "1", ("t",)), ImageSource("B", "1", ("u", "v")), ImageSource("C", "1"))
    card = BenchmarkCard("b", "B", "", "", sources, None, ("test",), {"t": 1, "u": 1, "v": 1})
    assert card.sources_of(("t",)) == ("A", "C")
    assert card.sources_of(("v", "t")) == ("A", "B", "C")
    assert card.sources_of(()) == ("C",)


@pytest.mark.parametrize("name", ["blink", "actiview", "mvp_bench", "mm_sap", "hvsbench"])
def test_every_task_of_a_benchmark_has_named_sources(name: str) -> None:
    card: BenchmarkCard = load("hybrid.benchmarks", name).card
    for task in card.tasks:
        assert card.sources_of((task,)), task
    for source in card.image_sources:
        assert is_known(source.name), source
        assert source.where, source
        assert set(source.tasks) <= set(card.tasks), source


@pytest.mark.parametrize("name", names("tools"))
def test_every_card_knows_its_default_weights_and_names_known_collections(name: str) -> None:
    one: Tool = load("tools", name)
    learned = one.backend("learned")
    if learned is None:
        return
    for default in (learned.weights, learned.package):
        assert default is None or provenance_of(learned, default) is not None
    found = [known.weights for known in learned.provenances]
    assert len(found) == len(set(found))
    for known in learned.provenances:
        assert known.licence
        assert all(map(is_known, known.trained_on)), known


def test_which_weights_answer(tmp_path: Path) -> None:
    one = tool("DIW", package="json")
    card = one.backend("learned")
    assert card is not None
    assert weights_in_use(one, card, {}) == "json"
    assert weights_in_use(one, card, {"depth": "x/y"}) == "x/y"
    assert weights_in_use(one, replace(card, package="no_such_package"), {}) == "a/b"
    assert weights_in_use(one, replace(card, package=None), {"other": "x/y"}) == "a/b"
    assert weights_in_use(one, replace(card, package=None, weights=None), {}) is None


def test_a_folder_is_known_by_its_place_in_the_hubs_cache_only(tmp_path: Path) -> None:
    card = tool("DIW").backend("learned")
    assert card is not None
    cached = tmp_path / "models--a--c" / "snapshots" / "0123"
    named = tmp_path / "a" / "c"
    for folder in (cached, named):
        folder.mkdir(parents=True)
    assert provenance_of(card, str(cached)) == Provenance("a/c", "MIT", ("SA-1B",))
    assert provenance_of(card, str(named)) is None
    assert provenance_of(card, "A/C") == Provenance("a/c", "MIT", ("SA-1B",))
    assert provenance_of(card, "a/d") is None
