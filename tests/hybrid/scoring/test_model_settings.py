"""A setting is found at the place where the model's own client writes it in the manifest."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.core.types import Kind
from hybrid.log.folder import RunFolder
from hybrid.models.options import server_metadata
from hybrid.report.facts import run_facts
from hybrid.scoring.compare import compare
from hybrid.scoring.model_settings import draws_answers, settings_of
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections.tool_only import ONCE, REPEAT, SECTION


def of_server(**sent: Any) -> dict[str, Any]:
    return {"model": dict(server_metadata("openai:gpt-4o", ModelSettings(), sent, (), caches=False))}


def in_process(temperature: float | None, **more: Any) -> dict[str, Any]:
    return {"model": {"model": "hf:small", "temperature": temperature, "max_tokens": 50, **more}}


@pytest.mark.parametrize(
    ("identity", "draws"),
    [
        (of_server(temperature=0.0), False),
        (of_server(temperature=0), False),
        (of_server(temperature=0.7), True),
        (of_server(max_completion_tokens=9), True),
        (of_server(temperature="0"), False),
        (of_server(temperature="0.0"), False),
        (of_server(temperature="0.7"), True),
        (of_server(temperature="warm"), True),
        (of_server(do_sample=False), False),
        (of_server(do_sample=True), True),
        # Only the most likely token can follow.
        (of_server(top_k=1), False),
        (of_server(top_k="1", temperature=0.7), False),
        (of_server(top_p=0.0), False),
        (of_server(top_k=2, top_p=0.9), True),
        # What a client sends in the body counts in place of the option beside it.
        (of_server(extra_body={"top_k": 1}), False),
        (of_server(extra_body={"do_sample": False}), False),
        (of_server(model_kwargs={"temperature": 0}), False),
        (of_server(generation_config={"temperature": 0}), False),
        (of_server(temperature=0.0, extra_body={"temperature": 0.9}), True),
        (of_server(extra_body=None), True),
        (in_process(0.0), False),
        (in_process(1.0), True),
        (in_process(None), True),
        (in_process(None, do_sample=False), False),
        (in_process(None, do_sample=True), True),
        # A recording may be of a model that draws.
        ({"model": {"model": "replay:made"}}, True),
        ({"model": None}, True),
        ({}, True),
    ],
)
def test_a_model_draws_unless_it_is_known_to_be_asked_at_temperature_0(identity: dict[str, Any], draws: bool) -> None:
    assert draws_answers(identity) is draws


def test_the_length_of_a_reply_has_one_name() -> None:
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict"):
        assert settings_of(of_server(**{name: 77}))["max_tokens"] == 77
    assert settings_of(of_server(extra_body={"num_predict": 77}))["max_tokens"] == 77
    assert settings_of(in_process(0.0))["max_tokens"] == 50
    assert "options" not in settings_of(of_server(temperature=0.0))


@pytest.mark.parametrize(
    ("answer", "kinds", "notes"),
    [
        ("text", [Kind.CHOICE], {ONCE + REPEAT}),
        # Likelihoods are the same every time, and such a run refuses --setting repeats.
        ("likelihood", [Kind.CHOICE], set()),
        ("likelihood", [Kind.CHOICE, Kind.NUMBER], {ONCE}),
    ],
)
def test_likelihoods_of_choices_are_not_drawn(
    answer: str, kinds: list[Kind], notes: set[str], tmp_path: Path, synthetic_runs: Any
) -> None:
    answers = {"controller": "rrwwrr", "mllm": "rwrwww"}
    folder = synthetic_runs.from_letters(
        tmp_path / "run", {name: {"Jigsaw": letters} for name, letters in answers.items()}
    )
    identity = {**folder.manifest["identity"], **in_process(None), "answer": answer}
    folder.write_manifest({**folder.manifest, "identity": identity})
    solvers = []
    for scored in compare_paths([folder.path]).solvers:
        questions: dict[str, Any] = dict(scored.questions)
        named = zip(questions.items(), itertools.cycle(kinds), strict=False)
        solvers.append(replace(scored, questions={name: replace(each, kind=kind) for (name, each), kind in named}))
    rows = [row for row in SECTION.rows(compare(solvers)) if row.quantity == "by luck at most" and not row.group]
    assert {row.note for row in rows} == notes


@pytest.mark.parametrize(("temperature", "lucky"), [(0.0, False), (0.8, True)])
def test_nothing_is_luck_for_a_server_at_temperature_0(
    temperature: float, lucky: bool, tmp_path: Path, synthetic_runs: Any
) -> None:
    answers = {"controller": "rrwwrr", "mllm": "rwrwww"}
    synthetic_runs.from_letters(tmp_path / "run", {name: {"Jigsaw": letters} for name, letters in answers.items()})
    folder = RunFolder(tmp_path / "run")
    manifest = folder.manifest
    folder.write_manifest({**manifest, "identity": {**manifest["identity"], **of_server(temperature=temperature)}})
    rows = list(SECTION.rows(compare(compare_paths([folder.path]).solvers)))
    assert any(row.quantity == "by luck at most" for row in rows) is lucky
    assert f"temperature {temperature}" in {fact.name: fact.value for fact in run_facts(folder)}["model"]
