"""Every rule against the wording of the question that its route stands for.

The prompts are those that the papers print (BLINK, figures 9 to 19; HVSBench, sections 3 and C; ActiView, appendix) or
that the data carries (MVP-Bench, all_questions.json); the findings are made up, and never symmetric: a rule that takes
the lowest for the highest, the next place for this one or left for right answers another letter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from hybrid.answers import parse
from hybrid.benchmarks.hvsbench.question_text import given as facts_of
from hybrid.benchmarks.hvsbench.question_text import options
from hybrid.types import Finding, ImageRef, Json, Kind, Prompt, StoredImage
from tools.forensics import judge
from tools.rules import ask_specialists as ask_rules

POINTS = ("Point A", "Point B", "Point C", "Point D")
IMAGES = ("the second image", "the third image")
REF_POINTS = (
    "a reference point is annotated on the first image, labeled with REF. You are given multiple red-circled points on "
    'the {place} image, choices of "A, B, C, D" are drawn beside each circle. '
)
VISUAL = (
    "A point is circled on the first image, labeled with REF. We change the camera position or lighting and shoot the "
    'second image. You are given multiple red-circled points on the second image, choices of "A, B, C, D" are drawn '
    "beside each circle. Which point on the second image corresponds to the point in the first image?"
)
SEMANTIC = (
    "Humans can find corresponding points for different objects in the same category. For instance, if there are "
    "images of two different cats, then the left ear tip of one cat corresponds to the left ear tip of the other cat, "
    "and the right front paw of one cat corresponds to the right front paw of the other cat. Given the following two "
    f"images, {REF_POINTS.format(place='second')}Select between the choices on the second image and find the "
    "corresponding point for the reference point. Which point is corresponding to the reference point?"
)
FUNCTIONAL = (
    "Humans can find corresponding points for the same action between different objects. For instance, if a person "
    'uses a pot versus a hammer to "Mash Pound", then the handle of the pot will be the corresponding point to the '
    "handle of the hammer because they serve the same function for the action -- to hold; and the bottom of the pot "
    "will be the corresponding point to the face of the hammer because they both mash the other object. Given the "
    f"following two images, {REF_POINTS.format(place='right')}Select from the choices on the second image and find "
    "the corresponding to the reference point?"
)
REFLECTANCE = (
    "Two points are annotated on the image, labeled by A and B. Consider the surface color of the points (the albedo "
    "of the surface, without the effect of shading). Which point has darker surface color, or the colors is about the "
    "same?"
)
DEPTH = (
    "Two points are circled on the image, labeled by A and B beside each circle. Which point is closer to the camera?"
)
MULTI_VIEW = (
    "The images are frames from a video. The video is shooting a static scene. The camera is either moving clockwise "
    "(left) or counter-clockwise (right) around the object. The first image is from the beginning of the video and the "
    "second image is from the end. Is the camera moving left or right when shooting the video?"
)
JIGSAW = (
    "Given the first image with the lower right corner missing, can you tell which one of the second image or the "
    "third image is the missing part? Imagine which image would be more appropriate to place in the missing spot. You "
    "can also carefully observe and compare the edges of the images."
)
ART = (
    "Some most common art painting styles include Realism, Impressionism, Expressionism, Pop Art, and Cubism. Given "
    "the following images of art paintings, use the first image as the reference image, and determine which one of the "
    "second or the third image shares the same style as the reference image?"
)
LOCALIZATION = (
    "A bounding box is an annotated rectangle surrounding an object. The edges of bounding boxes should touch the "
    "outermost pixels of the object that is being labeled. Given the two bounding boxes on the image, labeled by A and "
    "B, which bounding box more accurately localizes and encloses the bus?"
)
FORENSIC = (
    "You are a judge in a photography competition, and now you are given the four images. Please examine the details "
    "and tell which one of them is most likely to be a real photograph."
)
SIMILARITY = (
    "Given three similar but different images, take the first image as reference. Can you tell which one of the latter "
    "two images is most similar to the first one?"
)


@dataclass(frozen=True)
class Case:
    """A question of a BLINK task, what the tool finds, and the letter that is right then."""

    route: str
    text: str
    choices: tuple[str, ...]
    images: int
    tool: str
    args: Mapping[str, Json]
    data: Mapping[str, Json]
    letter: str | None


def scored(*scores: float) -> Mapping[str, Json]:
    """The forensics tool's finding for detector scores, 1 for a generator."""
    return judge(scores, "x").data


def labelled(**more: Json) -> dict[str, Json]:
    return {"labels": ["A", "B"], **more}


FOUR_LETTERS: dict[str, Json] = {"labels": ["A", "B", "C", "D"]}
FOUR_IMAGES = ("the first image", "the second image", "the third image", "the fourth image")
SIDES = ("left", "right")
DARKER = ("A is darker", "B is darker", "About the same")
CLOSER = ("A is closer", "B is closer")

CASES = [
    Case("Forensic_Detection", FORENSIC, FOUR_IMAGES, 4, "forensics", {}, scored(0.97, 0.02, 0.90, 0.88), "B"),
    Case("Forensic_Detection", FORENSIC, FOUR_IMAGES, 4, "forensics", {}, scored(0.6, 0.99, 0.7, 0.1), "D"),
    Case("Forensic_Detection", FORENSIC, FOUR_IMAGES, 4, "forensics", {}, scored(0.1, 0.9, 0.1, 0.8), None),
    Case("Visual_Correspondence", VISUAL, POINTS, 2, "correspondence", {}, {"best": "C"}, "C"),
    Case("Semantic_Correspondence", SEMANTIC, POINTS, 2, "semantic_correspondence", FOUR_LETTERS, {"best": "D"}, "D"),
    Case(
        "Functional_Correspondence", FUNCTIONAL, POINTS, 2, "semantic_correspondence", FOUR_LETTERS, {"best": "B"}, "B"
    ),
    Case("Relative_Depth", DEPTH, CLOSER, 1, "depth", labelled(), {"nearer": "B"}, "B"),
    Case("Relative_Depth", DEPTH, CLOSER, 1, "depth", labelled(), {"nearer": "A"}, "A"),
    *(
        Case(route, text, choices, 1, tool, labelled(), {key: said}, None)
        for said in ("((", "A|x", ".")
        for route, text, choices, tool, key in (
            ("Relative_Depth", DEPTH, CLOSER, "depth", "nearer"),
            ("Relative_Reflectance", REFLECTANCE, DARKER, "reflectance", "darker"),
        )
    ),
    Case("Relative_Reflectance", REFLECTANCE, DARKER, 1, "reflectance", labelled(), {"darker": "B"}, "B"),
    Case("Relative_Reflectance", REFLECTANCE, DARKER, 1, "reflectance", labelled(), {"darker": "A"}, "A"),
    Case("Relative_Reflectance", REFLECTANCE, DARKER, 1, "reflectance", labelled(), {"same": True}, "C"),
    Case("Multi-view_Reasoning", MULTI_VIEW, SIDES, 2, "motion", {}, {"moved": "right"}, "B"),
    Case("Multi-view_Reasoning", MULTI_VIEW, SIDES, 2, "motion", {}, {"moved": "left"}, "A"),
    Case(
        "Multi-view_Reasoning",
        MULTI_VIEW,
        ("counter-clockwise", "clockwise"),
        2,
        "motion",
        {},
        {"moved": "left"},
        "B",
    ),
    Case("Jigsaw", JIGSAW, IMAGES, 3, "jigsaw", {}, {"best": 0}, "A"),
    Case("Jigsaw", JIGSAW, IMAGES, 3, "jigsaw", {}, {"best": 1}, "B"),
    Case("Jigsaw", JIGSAW, IMAGES, 3, "jigsaw", {}, {"best": 2}, None),
    Case("Jigsaw", JIGSAW, IMAGES, 3, "jigsaw", {}, {"best": -1}, None),
    Case("Jigsaw", JIGSAW, IMAGES, 3, "jigsaw", {}, {"best": True}, None),
    Case("Art_Style", ART, IMAGES, 3, "similarity", {"aspect": "style"}, {"best": 1}, "B"),
    Case("Visual_Similarity", SIMILARITY, IMAGES, 3, "similarity", {"aspect": "content"}, {"best": 0}, "A"),
    Case("Visual_Similarity", SIMILARITY, IMAGES, 3, "similarity", {"aspect": "content"}, {"best": 1}, "B"),
    Case(
        "Object_Localization",
        LOCALIZATION,
        ("Box A", "Box B"),
        1,
        "localization",
        labelled(name="bus"),
        {"best": "B", "best_index": 1},
        "B",
    ),
    Case(
        "Counting",
        "How many blue floats are there?",
        ("0", "3", "2", "1"),
        1,
        "detection",
        {"names": ["blue float"]},
        {"counts": {"blue float": 1}},
        "D",
    ),
    Case(
        "Spatial_Relation",
        "Is the car beneath the cat?",
        ("yes", "no"),
        1,
        "relation",
        {"subject": "car", "relation": "under", "reference": "cat"},
        {"holds": False},
        "B",
    ),
    Case(
        "Spatial_Relation",
        "Is the bed at the right side of the dining table?",
        ("yes", "no"),
        1,
        "relation",
        {"subject": "bed", "relation": "right of", "reference": "dining table"},
        {"holds": True},
        "A",
    ),
    Case(
        "Spatial_Relation",
        "Does the sink contain the cat?",
        ("yes", "no"),
        1,
        "relation",
        {"subject": "sink", "relation": "containing", "reference": "cat"},
        {"holds": True},
        "A",
    ),
]


def shown(count: int) -> tuple[ImageRef, ...]:
    return tuple(
        ImageRef(f"img:{place}", StoredImage("0" * 64, 400, 200, "image/png")) for place in range(1, count + 1)
    )


def blink(case: Case, choices: tuple[str, ...]) -> Prompt:
    letters = "\n".join(f"({letter}) {choice}" for letter, choice in zip("ABCD", choices, strict=False))
    text = f"{case.text}\nSelect from the following choices.\n{letters}"
    return Prompt((text, *shown(case.images)), Kind.CHOICE, choices, route=case.route)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route}-{case.letter}")
async def test_the_answer_to_the_question_as_it_is_worded(fakes: Any, case: Case, turned: bool) -> None:
    """Turned, the choices stand in the reverse order: the words decide, and not the place."""
    choices = case.choices[::-1] if turned else case.choices
    asked = blink(case, choices)
    ctx = fakes.context_of(asked, findings=[Finding("", case.data, 0.7, "learned", "1")])
    said = await ask_rules(asked, ctx)
    ((tool, images, args),) = ctx.tool.calls
    assert (tool, images) == (case.tool, tuple(f"img:{place}" for place in range(1, case.images + 1)))
    assert {**args, **_sorted(args)} == {**case.args, **_sorted(case.args)}
    wanted = None if case.letter is None else case.choices["ABCD".index(case.letter)]
    assert (None if said is None else choices["ABCD".index(said.letter)]) == wanted


def _sorted(args: Mapping[str, Any]) -> dict[str, Json]:
    return {"labels": sorted(args["labels"])} if "labels" in args else {}


def boxes_in_order(*labels: int) -> Finding:
    """Boxes of these labels from the most to the least salient."""
    rows: list[Json] = [
        {"label": str(label), "saliency_0_1": 1 - 0.3 * rank, "box_px": [0, 90 + rank, 9, 95 + rank]}
        for rank, label in enumerate(labels)
    ]
    return Finding("", {"objects": rows}, 0.8, "classical", "1")


def gaze(route: str, kind: Kind, text: str) -> Prompt:
    choices = () if kind in (Kind.INTEGER, Kind.SCANPATH) else options(text)
    return Prompt((text, *shown(1)), kind, choices, given=facts_of(route, text, (400, 200), "xyxy"), route=route)


TRIPLE = "[A] [0.00, 0.00, 0.25, 0.50] [B] [0.25, 0.00, 0.50, 0.50] [C] [0.50, 0.00, 0.75, 0.50]"
PAIR = "[A] [0.00, 0.00, 0.25, 0.50] [B] [0.25, 0.00, 0.50, 0.50]"
PATHS = (
    "[A] X = [0.50, 0.10, 0.20] Y = [0.50, 0.10, 0.20] T = [100, 200, 300] "
    "[B] X = [0.50, 0.90, 0.80] Y = [0.50, 0.90, 0.80] T = [100, 200, 300]"
)
SPOTS = "[A] (0.48, 0.50) [B] (0.10, 0.20) [C] (0.90, 0.70) [D] (0.18, 0.59)"
SEARCH = (
    "[Requirement] Predict eye fixation points for searching for a sink in the provided image. Output the fixation "
    "points as three separate lists, each containing 6 values."
)
FREE = SEARCH.replace("searching for a sink in", "free-viewing of")
RANKS = "[A] the most salient [B] the second most salient [C] the third most salient"

LOOKED = [
    ("Q1", Kind.CHOICE, f"Which object is the most salient in the image? {TRIPLE}", [boxes_in_order(1, 2, 0)], "B"),
    (
        "Q1",
        Kind.CHOICE,
        f"Which object attracts the highest visual attention? {TRIPLE}",
        [boxes_in_order(2, 0, 1)],
        "C",
    ),
    (
        "Q2",
        Kind.INTEGER,
        "How many salient objects are there in the image?",
        [Finding("", {"count": 5}, 0.5, "c", "1")],
        5,
    ),
    (
        "Q3",
        Kind.ORDER,
        f"Rank these objects from the most to the least salient. {TRIPLE}",
        [boxes_in_order(1, 2, 0)],
        "BCA",
    ),
    ("Q4", Kind.CHOICE, f"Which of the two boxes is more salient? {PAIR}", [boxes_in_order(1, 0)], "B"),
    (
        "Q6",
        Kind.CHOICE,
        f"How salient is the object in [0.00, 0.00, 0.25, 0.50]? {RANKS}",
        [boxes_in_order(0, 1), boxes_in_order(1, 2, 0)],
        "C",
    ),
    (
        "Q8",
        Kind.CHOICE,
        f"Which fixation points are more appropriate for free-viewing? {PATHS}",
        [boxes_in_order(2, 0, 3, 1)],
        "B",
    ),
    (
        "Q10",
        Kind.CHOICE,
        f"Which fixation had the longest duration during free-viewing? {SPOTS}",
        [boxes_in_order(3, 0, 1, 2)],
        "D",
    ),
    (
        "Q11",
        Kind.CHOICE,
        f"Which fixation points are more appropriate when looking for a microwave? {PATHS}",
        [boxes_in_order(1, 2, 0, 3)],
        "A",
    ),
    (
        "Q13",
        Kind.CHOICE,
        f"Which fixation had the longest duration during searching for a sink? {SPOTS}",
        [boxes_in_order(2, 0, 1, 3)],
        "C",
    ),
]


@pytest.mark.parametrize(("route", "kind", "text", "findings", "wanted"), LOOKED)
async def test_where_people_look(
    fakes: Any, route: str, kind: Kind, text: str, findings: Sequence[Finding], wanted: Any
) -> None:
    asked = gaze(route, kind, text)
    said = await ask_rules(asked, fakes.context_of(asked, findings=list(findings)))
    assert parse(said.answer, kind, asked.choices).value == wanted


async def test_the_more_salient_of_two_named_objects(fakes: Any) -> None:
    text = (
        "Between these two objects — [A] the person on the left side [B] the bicycle on the right side — please select "
        "the option representing the more salient object."
    )
    asked = gaze("Q5", Kind.CHOICE, text)
    names = ["person on the left side", "bicycle on the right side"]
    rows: list[Json] = [
        {"name": name, "score_0_1": 0.9, "box_px": [20 * place, 0, 20 * place + 9, 9]}
        for place, name in enumerate(names)
    ]
    ctx = fakes.context_of(asked, findings=[Finding("", {"boxes": rows}, 0.7, "learned", "1"), boxes_in_order(1, 0)])
    assert (await ask_rules(asked, ctx)).letter == "B"
    assert ctx.tool.calls[0][2] == {"names": names}


@pytest.mark.parametrize(("route", "text", "target"), [("Q9", FREE, None), ("Q12", SEARCH, "sink")])
async def test_a_scanpath_of_as_many_fixations(fakes: Any, route: str, text: str, target: str | None) -> None:
    asked = gaze(route, Kind.SCANPATH, text)
    data: dict[str, Json] = {"x_0_1": [0.5, 0.25], "y_0_1": [0.4, 0.75], "t_ms": [200, 310]}
    ctx = fakes.context_of(asked, findings=[Finding("", data, 0.4, "classical", "1")])
    read: Any = parse((await ask_rules(asked, ctx)).answer, Kind.SCANPATH).value
    assert (read.x, read.y, read.t_ms) == ((0.5, 0.25), (0.4, 0.75), (200, 310))
    assert ctx.tool.calls[0][2] == {"fixations": 6} | ({} if target is None else {"target": target})


@pytest.mark.parametrize(("seen", "word"), [(True, "no"), (False, "yes")])
async def test_whether_more_has_to_be_seen(fakes: Any, seen: bool, word: str) -> None:
    text = "The question about the whole picture is: Where is the umbrella?\nDo you need to see more of the picture?"
    asked = Prompt((*shown(1), text), Kind.CONTINUE, (), route=Kind.CONTINUE)
    rows: list[Json] = [{"name": "umbrella", "score_0_1": 0.9, "box_px": [0, 0, 9, 9]}] if seen else []
    ctx = fakes.context_of(asked, findings=[Finding("", {"boxes": rows}, 0.7, "learned", "1")])
    assert (await ask_rules(asked, ctx)).answer == word
