"""New weights are checked on known answers once, when they are loaded; wrong weights are refused, naming the check."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.config import BackendChoice
from hybrid.core.errors import ToolError, WeightsError
from hybrid.core.types import Fault
from hybrid.serving.known_answers import Checked, check_once, failures, run_checks, series_counts
from hybrid.serving.loader import Loader
from hybrid.tool import Args, BackendCard, Card, CheckCase, CheckSeries, Evidence, KnownAnswer, Request, Stages, Tool


class Brightness:
    """A backend that says whether an image is bright, and the opposite if its weights say so."""

    def __init__(self) -> None:
        self.flipped = False
        self.runs = 0

    def setup(self, device: str, weights: str | None) -> None:
        self.flipped = bool(weights) and b"flipped" in (Path(str(weights)) / "model.safetensors").read_bytes()

    def run(self, requests: Sequence[Request[Args]]) -> list[Evidence]:
        self.runs += len(requests)
        bright = [bool(request.images[0].mean() > 100) != self.flipped for request in requests]
        return [Evidence(f"bright: {value}", {"bright": value}, 1.0) for value in bright]


def known_answer(grey: int) -> KnownAnswer:
    def validation_error(evidence: Evidence) -> str | None:
        return None if evidence.data["bright"] == (grey > 100) else f"bright is {evidence.data['bright']}"

    return KnownAnswer(f"grey {grey}", lambda: CheckCase((np.full((4, 4, 3), grey, np.uint8),), {}, validation_error))


def tool_of(backend: Any, *checks: KnownAnswer) -> Tool:
    card = BackendCard("learned", "1", lambda: backend, "says whether it is bright", weights="a/b")
    return Tool(Card("brightness", "summary", "limits", (card,)), Args, checks)


def weights(folder: Path, content: bytes) -> str:
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(content)
    return str(folder)


def choice(folder: str, *, unchecked: bool = False) -> BackendChoice:
    return BackendChoice("learned", {"brightness": folder}, unchecked=unchecked)


def test_a_changed_configuration_is_checked_anew(tmp_path: Path) -> None:
    folder, backend = weights(tmp_path / "w", b"good"), Brightness()
    for mean in ("0.5", "0.4"):
        (tmp_path / "w" / "preprocessor_config.json").write_text(f'{{"image_mean": {mean}}}')
        Loader(choice(folder)).load(tool_of(backend, known_answer(10)))
    assert backend.runs == 2


def test_a_flipped_sign_is_refused_by_name_every_time_and_unless_unchecked(tmp_path: Path, hybrid_home: Path) -> None:
    folder = weights(tmp_path / "w", b"flipped")
    tool = tool_of(Brightness(), known_answer(10), known_answer(200))
    for _ in range(2):
        with pytest.raises(WeightsError, match=r"fail 2 of 2 known answers \(grey 10: bright is True; grey 200: "):
            Loader(choice(folder)).load(tool)
    assert not (hybrid_home / "checked").exists()
    assert Loader(choice(folder, unchecked=True)).load(tool).weights == Path(folder)


class Raises:
    """A backend that raises the given error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def setup(self, device: str, weights: str | None) -> None:
        """Do nothing, because nothing is loaded."""

    def run(self, requests: Sequence[Request[Args]]) -> list[Evidence]:
        raise self.error


class OutOfMemoryError(RuntimeError):
    """The error of torch when a GPU is full, recognised by this name."""


def test_what_a_network_makes_of_an_easy_image_is_the_result() -> None:
    (crashed,) = run_checks(tool_of(None, known_answer(10)), Raises(ValueError("shapes differ")))
    assert crashed.wrong == "ValueError: shapes differ"
    (refused,) = run_checks(tool_of(None, known_answer(10)), Raises(ToolError("words only", Fault.BAD_ARGUMENTS)))
    assert (refused.wrong, refused.unasked) == (None, "words only")
    assert failures([crashed, refused]) == ["grey 10: ValueError: shapes differ"]


class InStages(Stages[Args, float, float]):
    """A staged tool that reports the brightness of an image, under a wrong name."""

    def setup(self, device: str, weights: str | None) -> None:
        """Do nothing, because nothing is loaded."""

    def prepare(self, request: Request[Args]) -> float:
        return float(request.images[0].mean())

    def compute(self, prepared: Sequence[float]) -> list[float]:
        return list(prepared)

    def finish(self, request: Request[Args], prepared: float, output: float) -> Evidence:
        return Evidence("Text.", {"brigth": output > 100}, 1.0)


def test_a_known_answer_with_a_check_of_the_raw_output_compares_the_schema_too() -> None:
    schema = {"properties": {"bright": {"type": "boolean"}}, "required": ["bright"]}
    image = np.full((4, 4, 3), 10, np.uint8)

    def pose(output: str | None) -> KnownAnswer:
        return KnownAnswer("grey", lambda: CheckCase((image,), {}, lambda _: None, lambda _: output))

    checks = pose(None), pose("raw output is wrong")
    checked = run_checks(replace(tool_of(None, *checks), output=schema), InStages())
    fault = "the output lacks the value 'bright' of its schema (did you mean 'brigth'?)"
    assert [result.wrong for result in checked] == [fault, "raw output is wrong"]


def test_a_full_device_says_nothing_about_weights(tmp_path: Path, hybrid_home: Path) -> None:
    backend = Raises(OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(OutOfMemoryError):
        check_once(tool_of(None, known_answer(10)), backend, "1", "cuda:0", None)
    assert not hybrid_home.exists()


def test_a_series_says_how_many_were_asked_and_right() -> None:
    series = CheckSeries("patterns", 2)
    checked = [
        Checked("a", None, 0.0, series=series),
        Checked("b", "it is wrong", 0.0, series=series),
        Checked("c", None, 0.0, "takes only words", series),
        Checked("alone", None, 0.0),
    ]
    assert series_counts(checked) == [
        "series patterns: 1 of 2 asked are right, at least 2 needed (3 in the series, which counts as one)"
    ]
