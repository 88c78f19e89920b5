"""Tools made from functions: the schema from the signature, known answers, rules, dependencies, and refusals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import PIL.Image
import pytest
from pydantic import Field

from hybrid.config import ServiceOptions
from hybrid.core.errors import ToolError
from hybrid.core.types import Finding, ImageRef, Kind, Prompt, StoredImage
from hybrid.models.toolspec import spec
from hybrid.serving.contract import breaches
from hybrid.serving.known_answers import failures, run_checks
from hybrid.serving.sources import made_by
from hybrid.tool import Evidence, Image, Need, Pixels, Request, Tool, ToolOutput, tool
from hybrid.tool.functions import FunctionTool, code_version
from hybrid.tool.output_schema import data_mismatch
from hybrid.tool.outputs import plain_json, schema_of
from hybrid.tool.rules import asks
from hybrid.tool.signature import read_docstring

BLACK, WHITE = np.zeros((8, 8, 3), np.uint8), np.full((8, 8, 3), 255, np.uint8)
LIMITS = "Says nothing about what the image shows."


class Light(ToolOutput):
    light_0_1: Annotated[float, Field(description="Mean of all channels.")]
    side: Literal["all", "left"]


@tool(limits=LIMITS)
def light(image: Image, side: Literal["all", "left"] = "all", factor: float = 1.0) -> Light:
    """Says how light an image is, as a whole.

    The mean of all channels.

    Args:
        side: The whole image,
            or its left half.
        factor (float): What the mean is multiplied by.
    """
    part = image if side == "all" else image[:, : image.shape[1] // 2]
    return Light(f"Lightness {part.mean() / 255:.2f}.", light_0_1=part.mean() / 255 * factor, side=side)


def request(built: Tool, *images: Any, needs: Any = None, seed: int = 0, **args: Any) -> Request[Any]:
    return Request(images, built.parse(args), needs or {}, seed)


def evidence_of(built: Tool, *images: Any, **options: Any) -> Evidence:
    (evidence,) = built.card.backends[0].make().run([request(built, *images, **options)])
    return evidence


def test_the_card_and_the_arguments_are_those_of_the_function() -> None:
    card = light.card
    assert (card.name, card.summary) == ("light", "Says how light an image is, as a whole.")
    assert (card.limits, card.images, card.needs) == (LIMITS, (1, 1), ())
    assert card.backends[0].summary == "The mean of all channels."
    parameters = spec(light)["function"]["parameters"]
    assert parameters["required"] == ["image"]
    assert parameters["properties"]["side"]["enum"] == ["all", "left"]
    assert parameters["properties"]["side"]["description"].startswith("The whole image, or its left half.")
    assert "multiplied" in parameters["properties"]["factor"]["description"]


def test_it_answers_as_a_tool_and_is_still_the_function() -> None:
    evidence = evidence_of(light, WHITE, side="left", factor=0.5)
    assert (evidence.text, evidence.data) == ("Lightness 1.00.", {"light_0_1": 0.5, "side": "left"})
    assert evidence.confidence == 1.0
    assert light(BLACK).light_0_1 == 0.0
    with pytest.raises(ToolError, match="side"):
        light.parse({"side": "right"})


def test_it_keeps_the_contract_and_is_the_code_of_the_function() -> None:
    assert breaches("light", light, ServiceOptions()) == ()
    assert {factory.__name__ for factory in made_by(light)} == {"light"}


def one(image: Image) -> ToolOutput: ...
def two(first: Image, second: Image) -> ToolOutput: ...
def up_to_two(first: Image, second: Image | None = None) -> ToolOutput: ...
def many(images: list[Image]) -> ToolOutput: ...
def starred(first: Image, *others: Image) -> ToolOutput: ...
def bounded(images: Annotated[list[Image], Field(min_length=2, max_length=4)]) -> ToolOutput: ...
def none(words: Annotated[str, "To be said."]) -> ToolOutput: ...


@pytest.mark.parametrize(
    ("function", "images"),
    [
        (one, (1, 1)),
        (two, (2, 2)),
        (up_to_two, (1, 2)),
        (many, (1, 16)),
        (starred, (2, 17)),
        (bounded, (2, 4)),
        (none, (0, 0)),
    ],
)
def test_the_signature_says_how_many_images(function: Callable[..., Any], images: tuple[int, int]) -> None:
    built = tool(limits=LIMITS, summary="Says nothing.")(function)
    assert built.card.images == images


def test_images_are_handed_over_in_their_order() -> None:
    @tool(limits=LIMITS)
    def order(first: Image, *others: Image, seed: int, last: float = 0.0) -> ToolOutput:
        """Says the means."""
        return ToolOutput("Means.", means_grey=[first.mean(), *(other.mean() for other in others)], seed_count=seed)

    @tool(limits=LIMITS)
    def pair(first: Image, second: Image | None = None) -> ToolOutput:
        """Says whether there are two."""
        return ToolOutput("Two.", two=second is not None, mean_grey=first.mean())

    assert evidence_of(order, WHITE, BLACK, WHITE, seed=7).data == {"means_grey": [255, 0, 255], "seed_count": 7}
    assert evidence_of(order, BLACK).data == {"means_grey": [0], "seed_count": 0}
    assert evidence_of(pair, BLACK).data == {"two": False, "mean_grey": 0}
    assert evidence_of(pair, WHITE, BLACK).data == {"two": True, "mean_grey": 255}


def test_the_output_of_another_tool_is_a_parameter_with_typed_values() -> None:
    @tool(limits=LIMITS)
    def twice(image: Image, light: Light) -> ToolOutput:
        """Says twice the lightness."""
        return ToolOutput("Twice.", twice_ratio=2 * light.light_0_1)

    def left(args: Any) -> dict[str, Any]:
        return {"side": "left"}

    @tool(limits=LIMITS)
    def asked(
        images: list[Image], outputs: Annotated[list[ToolOutput], Need("light", lambda args: {"side": "left"})]
    ) -> ToolOutput:
        """Says all lightnesses."""
        return ToolOutput("All.", all_ratio=[output.light_0_1 for output in outputs])

    @tool(limits=LIMITS)
    def given(image: Image, light: Annotated[ToolOutput, {"side": "left"}]) -> ToolOutput:
        """Says the lightness."""
        return ToolOutput("Given.", light_0_1=light.light_0_1)

    (need,) = twice.card.needs
    assert (need.tool, need.args(None)) == ("light", {})
    assert [(need.tool, need.args(None)) for need in (*asked.card.needs, *given.card.needs)] == [
        ("light", {"side": "left"})
    ] * 2
    findings = tuple(Finding("", {"light_0_1": value, "side": "all"}, 1.0, "classical", "1") for value in (0.25, 0.5))
    assert evidence_of(twice, WHITE, needs={"light": findings[:1]}).data == {"twice_ratio": 0.5}
    assert evidence_of(asked, WHITE, BLACK, needs={"light": findings}).data == {"all_ratio": [0.25, 0.5]}
    other = replace(findings[0], data={"brightness_0_1": 1.0})
    with pytest.raises(ToolError, match=r"light: its output is not as expected: Light, light_0_1: Field required"):
        evidence_of(twice, WHITE, needs={"light": (other,)})


def checked(built: FunctionTool) -> list[str]:
    return failures(run_checks(built, built.card.backends[0].make()))


def test_a_known_answer_is_checked_by_its_values() -> None:
    variant = replace(light)

    @variant.check(expect={"light_0_1": 0.5, "side": "left"}, side="left", factor=0.5)
    def white_half() -> Image:
        return WHITE

    @variant.check(expect={"light_0_1": lambda value: value < 0.1, "side": "all"})
    def black() -> Image:
        return BLACK

    assert [check.name for check in variant.checks] == ["white half", "black"]
    assert checked(variant) == []

    @variant.check(expect={"light_0_1": 0.9, "dark": True}, within=0.05)
    def wrong() -> Image:
        return WHITE

    assert checked(variant) == ["wrong: light_0_1 is 1.0, and not 0.9"]
    broken = replace(light, checks=(), output={**(light.output or {}), "required": ["light_0_1", "sides"]})
    broken.check(expect={})(white_half)
    assert checked(broken) == ["white half: the output lacks the value 'sides' of its schema"]


def test_a_known_answer_of_a_tool_that_needs_another_has_its_output() -> None:
    @tool(limits=LIMITS)
    def twice(image: Image, light: Light) -> ToolOutput:
        """Says twice the lightness."""
        return ToolOutput("Twice.", twice_ratio=2 * light.light_0_1)

    @twice.check(expect={"twice_ratio": 0.5}, outputs={"light": Light("", light_0_1=0.25, side="all")})
    def quarter() -> Image:
        return WHITE

    assert checked(twice) == []


CHOICES = ("a bright one", "a dark one", "3", "30")


@pytest.mark.parametrize(
    ("value", "kind", "answer"),
    [
        ("bright", Kind.CHOICE, "Answer: (A)"),
        ("A dark one.", Kind.CHOICE, "Answer: (B)"),
        ("(b)", Kind.CHOICE, "Answer: (B)"),
        (3, Kind.CHOICE, "Answer: (C)"),
        (30.0, Kind.CHOICE, "Answer: (D)"),
        ("one", Kind.CHOICE, None),
        ("none of them", Kind.CHOICE, None),
        (None, Kind.CHOICE, None),
        (True, Kind.YES_NO, "Answer: yes"),
        (False, Kind.YES_NO, "Answer: no"),
        (4, Kind.INTEGER, "Answer: 4"),
        (0.25, Kind.NUMBER, "Answer: 0.25"),
        ("cup", Kind.TEXT, "Answer: cup"),
    ],
)
async def test_a_rule_returns_the_answer_itself(fakes: Any, value: Any, kind: Kind, answer: str | None) -> None:
    variant = replace(light)

    @variant.rule("Lighting", "by_text")
    def judge(output: Light, prompt: Prompt) -> Any:
        assert output.side == "all"
        return value

    ref = ImageRef("img:1", StoredImage("0" * 64, 8, 8, "image/png"))
    prompt = Prompt((ref, "Which?"), kind, CHOICES if kind is Kind.CHOICE else (), route="Lighting")
    finding = Finding("", {"light_0_1": 0.5, "side": "all"}, 0.75, "classical", "1")
    assert {*variant.rules} == {"Lighting", "by_text"}
    text = await variant.rules["by_text"](prompt, fakes.context_of(prompt, findings=[finding]))
    assert (None if text is None else (text.answer, text.confidence)) == (None if answer is None else (answer, 0.75))


async def test_a_rule_makes_the_arguments_of_the_question(fakes: Any) -> None:
    variant = replace(light)

    @variant.rule("Lighting", args=lambda prompt: {"side": "left"} if "left" in prompt.text else None)
    def judge(output: ToolOutput) -> str:
        return "yes"

    rule = variant.rules["Lighting"]
    assert rule.tools == ("light",)
    ctx = fakes.context_of(prompt := Prompt(("Is it bright?",), Kind.YES_NO))
    assert await rule(prompt, ctx) is None
    assert [step.name for step in ctx.log.steps] == ["no arguments"]


def test_a_rule_of_several_calls_is_added_as_it_is() -> None:
    variant = replace(light)

    @variant.rule("Lighting")
    @asks("light", "depth")
    async def judge(prompt: Prompt, ctx: Any) -> None:
        return None

    assert variant.rules["Lighting"] is judge
    assert judge.tools == ("light", "depth")


def bare(image) -> ToolOutput: ...  # type: ignore[no-untyped-def]
def keywords(image: Image, **rest: int) -> ToolOutput: ...
def numbers(image: Image, *rest: int) -> ToolOutput: ...
def after_all(images: list[Image], image: Image) -> ToolOutput: ...
def late_star(image: Image, side: str, *rest: Image) -> ToolOutput: ...
def single_need(first: Image, second: Image, light: Light) -> ToolOutput: ...
def unwritable(image: Image, side: Callable[[], int]) -> ToolOutput: ...


Tensor = type("Tensor", (), {"__module__": "torch"})


def tensor(photo: Tensor) -> ToolOutput: ...  # type: ignore[valid-type]
def pixels(photo: Pixels) -> ToolOutput: ...
def optional_pixels(image: Image, photo: Pixels | None = None, *rest: Image) -> ToolOutput: ...
def pixel_list(photos: list[Pixels]) -> ToolOutput: ...
def optional_list(image: Image, photos: Annotated[list[Pixels], "more"] | None = None) -> ToolOutput: ...
def array(photo: np.ndarray[Any, Any]) -> ToolOutput: ...
def typed_array(image: Image, photo: npt.NDArray[np.uint8] | None = None) -> ToolOutput: ...
def pillow(photo: PIL.Image.Image) -> ToolOutput: ...
def pillow_module(photo: PIL.Image) -> ToolOutput: ...  # type: ignore[valid-type]
def unknown(image: Image, photo: "Photograph") -> ToolOutput: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (bare, "bare: give the type of image: image: Image"),
        (keywords, r"\*\*rest cannot be offered to a model"),
        (numbers, r"\*rest can only be images: \*rest: Image"),
        (after_all, "image can never get an image, because images takes all images"),
        (late_star, r"\*rest must come after the other images and before all other parameters"),
        (single_need, r"light must be a list: light: list\[ToolOutput\]"),
        (unwritable, "a model cannot write side: .*; write a type that JSON has: str, int"),
        (
            pixels,
            r"pixels: a model cannot write photo: hybrid\.core\.types\.Pixels; for an image write photo: Image \(",
        ),
        (optional_pixels, r"for an image write photo: Image \| None = None"),
        (pixel_list, r"for an image write photos: list\[Image\]"),
        (optional_list, r"for an image write photos: list\[Image\] \| None = None"),
        (tensor, r"cannot write photo: torch\.Tensor; for an image write photo: Image "),
        (array, r"cannot write photo: numpy\.ndarray.*; for an image write photo: Image"),
        (typed_array, r"cannot write photo: numpy\.ndarray.*; for an image write photo: Image \| None = None"),
        (pillow, r"cannot write photo: PIL\.Image\.Image; for an image write photo: Image"),
        (pillow_module, r"cannot write photo: PIL\.Image; for an image write photo: Image"),
        (unknown, "the type of photo is not known: name 'Photograph' is not defined; import it at the top"),
    ],
)
def test_what_no_tool_can_be_made_of_is_refused_with_what_to_write(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tool(limits=LIMITS, summary="Says nothing.")(function)


def test_a_function_without_words_for_the_model_is_refused() -> None:
    with pytest.raises(TypeError, match="first line of its docstring"):
        tool(limits=LIMITS)(one)
    with pytest.raises(TypeError, match=r"write @tool\(limits="):
        tool(limits=one)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"write @tool\(limits="):
        tool(one)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"write @tool\(limits="):
        tool()
    with pytest.raises(TypeError, match="needs the routes"):
        light.rule()


def test_what_is_no_output_is_an_error_with_the_form_of_one() -> None:
    built = tool(limits=LIMITS, summary="Says nothing.")(one)
    with pytest.raises(TypeError, match=r"one must return ToolOutput\(TEXT, .*, but returns a NoneType"):
        evidence_of(built, WHITE)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"light_0_1": 1.0}, "Light, side: Field required"),
        ({"light_0_1": "much", "side": "all"}, "Light, light_0_1: Input should be a valid number"),
        ({"light_0_1": 1.0, "side": "all", "sides": 1}, r"Light has no value 'sides' \(did you mean 'side'\?\)"),
    ],
)
def test_a_class_of_outputs_refuses_other_values(values: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Light("Text.", **values)


def test_values_of_an_output_are_its_attributes_and_plain_json() -> None:
    output = ToolOutput(
        "Text.", n_count=np.int64(3), box_px=np.array([1, 2]), on=np.bool_(True), rest=({"a_m": np.float32(0.5)},)
    )
    assert output.data == {"n_count": 3, "box_px": [1, 2], "on": True, "rest": [{"a_m": 0.5}]}
    assert type(plain_json(np.float64(0.5))) is float
    assert output.n_count == 3
    with pytest.raises(AttributeError, match=r"no value 'n_counts' \(did you mean 'n_count'\?\); it has: n_count"):
        _ = output.n_counts
    with pytest.raises(TypeError, match="cannot be named 'data'"):
        ToolOutput("Text.", data=1)
    with pytest.raises(TypeError, match="first value is the text"):
        ToolOutput({"a": 1})  # type: ignore[arg-type]


def test_the_schema_of_an_output_says_keys_and_types() -> None:
    schema = schema_of(Light)
    assert light.output == schema
    assert schema["properties"]["light_0_1"] == {"type": "number", "description": "Mean of all channels."}  # type: ignore[index, call-overload]
    assert schema["required"] == ["light_0_1", "side"]
    assert ToolOutput.schema() is None
    with pytest.raises(TypeError, match="declares no fields"):
        schema_of(ToolOutput)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"light_0_1": 1, "side": "left"}, None),
        ({"light_0_1": True, "side": "left"}, "the value 'light_0_1' is True, but its schema requires number"),
        ({"light_0_1": 1, "side": "up"}, "the value 'side' is 'up', but its schema requires all | left"),
        (
            {"light_01": 1, "side": "all"},
            "the output lacks the value 'light_0_1' of its schema (did you mean 'light_01'?)",
        ),
        (
            {"light_0_1": 1, "side": "all", "x": 1},
            "the value 'x' is not in the output's schema; there are: light_0_1, side",
        ),
    ],
)
def test_data_are_compared_with_the_schema(data: dict[str, Any], fault: str | None) -> None:
    assert data_mismatch(light.output or {}, data) == fault


FACTOR = 2


def helper(value: int) -> int:
    return value * FACTOR


def uses_helper(image: Image) -> int:
    return helper(1)


def test_the_version_is_that_of_the_code_and_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    previous = code_version(uses_helper)
    assert code_version(uses_helper) == previous
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert code_version(uses_helper) != previous
    assert code_version(one) != code_version(two)


def test_a_docstring_without_arguments_has_none() -> None:
    assert read_docstring(helper) == ("", "", {})
    assert read_docstring(light.source)[2] == {
        "side": "The whole image, or its left half.",
        "factor": "What the mean is multiplied by.",
    }


def test_a_second_wording_and_what_it_predicts_of_eyes() -> None:
    def path(image: Image) -> ToolOutput:
        """Says where eyes go first."""
        return ToolOutput("Eyes go to the middle first.", x_0_1=[0.5], y_0_1=[0.5], t_ms=[0.0])

    built = tool(limits=LIMITS, wording=[("go to", "move to")], gaze="path")(path)
    assert (built.wording, built.gaze) == ((("go to", "move to"),), "path")
    with pytest.raises(TypeError, match="a map needs a class with predict_map"):
        tool(limits=LIMITS, gaze="map")  # type: ignore[arg-type]


@pytest.mark.parametrize("wording", [[("go to", "")], [("2 of", "two of")], ["go"], [("a", "b", "c")], "go"])
def test_a_wording_is_pairs_of_phrases_without_digits(wording: Any) -> None:
    with pytest.raises(TypeError, match="two texts without digits"):
        tool(limits=LIMITS, wording=wording)(silent)


def silent(image: Image) -> ToolOutput:
    """Says nothing."""
    return ToolOutput("Nothing.")
