"""`hybrid compare` as a user calls it: equal p values in every command, refusals, and numbers from published data."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import Command, Words
from tests.hybrid.cli.test_score import saved

TITLE = "Which solver is better on the same questions?\n"


def headline(out: str) -> list[str]:
    """Return the rows of the table of solvers, as printed."""
    lines = out[out.index("blink: accuracy_macro, differences to ") :].split("\n\n", maxsplit=1)[0].splitlines()
    # Column headers may take several lines above the rule.
    (rule,) = [place for place, line in enumerate(lines) if line.startswith("---")]
    return lines[rule + 1 :]


def differences(out: str, quantity: str = "difference", metric: str = "accuracy_macro") -> list[dict[str, Any]]:
    """Return the rows of one quantity of the paired differences in JSON, as the tables select them."""
    values = ("differences", quantity, metric)
    rows = [row for row in json.loads(out)["results"] if "detail" not in row]
    return [row for row in rows if (row["section"], row["quantity"], row.get("metric")) == values]


@pytest.mark.system
def test_every_command_prints_the_same_p_of_the_pairs_that_are_chosen(
    command: Command, blink: Words, tmp_path: Path
) -> None:
    solvers = ("--solver", "specialist", "--solver", "mllm", "--solver", "arbiter")
    text = headline(command("run", *blink, *solvers, code=0).out)
    assert len(text) == 3
    assert headline(command("score", tmp_path / "run").out) == text
    assert headline(command("compare", tmp_path / "run").out) == text
    for row in differences(command("compare", tmp_path / "run", "--json").out):
        if row["a"] == "mllm":
            (line,) = [line for line in text if line.startswith(row["b"])]
            assert line.split()[-1] == (f"{row['p']:.3f}" if "p" in row else "-")

    # `--baseline` and `--pairs` choose what is tested.
    def pairs(*words: str) -> set[tuple[str, str]]:
        result = command("compare", tmp_path / "run", *words, "--json", code=0)
        return {(row["a"], row["b"]) for row in differences(result.out)}

    assert pairs("--baseline", "arbiter") == {("arbiter", "mllm"), ("arbiter", "specialist")}
    assert pairs("--pairs", "specialist:mllm") == {("specialist", "mllm")}
    process = command("compare", tmp_path / "run", "--baseline", "nobody", code=2)
    assert "unknown solver; available: specialist, mllm, arbiter" in process.err


@pytest.mark.system
def test_what_is_printed_can_be_chosen(command: Command, tmp_path: Path, synthetic_runs: Any) -> None:
    # A real run, and the controller's runs with blank and with shuffled tools.
    controls = synthetic_runs.write(tmp_path, "blink", size=5).paths
    head, _, ceiling = command("compare", *controls, "--only", "ceiling").out.partition("\n\n")
    text = (
        "made:up | BLINK val | 15 questions | date not recorded\n"
        "Unanswered questions count as wrong in every number here (--unanswered guess: "
    )
    assert head.startswith(text)
    assert ceiling.startswith("How close does the hybrid come")
    two = command("compare", *controls, "--only", "gain,differences").out
    assert (TITLE in two, "Does the gain come from" in two, "How right is" in two) == (True, True, False)
    short = command("compare", *controls).out
    assert TITLE not in short
    assert short.endswith("\nMore: --all, or --only NAME: differences, helped, gain, evidence, chance, ...\n")
    for form in ("--json", "--csv"):
        for words in (("--all",), ("--only", "gain")):
            refused = command("compare", *controls, *words, form, code=2)
            assert f"{form} has every number: leave them out" in refused.err
    unknown = command("compare", *controls, "--only", "gains", code=2)
    assert "--only gains: unknown section (did you mean 'gain'?); it has: metrics, differences, " in unknown.err
    for margin in ("0", "1", "-0.1", "a"):
        refused = command("compare", *controls, "--margin", margin, code=2)
        assert "--margin" in refused.err


def test_published_numbers_are_below_when_asked_for(command: Command, tmp_path: Path) -> None:
    path = saved(tmp_path / "m", {1: "(A)", 2: "(B)"})
    for name in ("score", "compare"):
        words = (name, path, "--benchmark", "blink")
        assert "published, Table" not in command(*words).out
        assert "published, Table" in command(*words, "--published").out
        command(*words, "--published", "--json", code=2)


@pytest.mark.system
@pytest.mark.shared_data
def test_unread_replies_of_a_published_model(command: Command, tmp_path: Path, shared_data: Path) -> None:
    (tmp_path / "Jigsaw.json").symlink_to(shared_data / "blink_outputs" / "QwenVLMax" / "Jigsaw.json")
    for rule, right in (("wrong", 6), ("guess", 77)):
        words = ("score", tmp_path, "--benchmark", "blink", "--field", "text", "--json", "--unanswered", rule)
        assert json.loads(command(*words).out)["tasks"]["Jigsaw"]["accuracy"] == pytest.approx(right / 150)


@pytest.mark.system
@pytest.mark.shared_data
def test_the_arbiter_rarely_turns_an_answer_of_the_specialist(
    command: Command, tmp_path: Path, shared_data: Path
) -> None:
    """If the specialist abstains, the arbiter repeats the model: that counts as neither help nor harm."""
    tasks = ("--task", "Relative_Depth", "--task", "Spatial_Relation", "--limit", 12)
    model = f"replay:{shared_data / 'blink_outputs' / 'GPT4o'}"
    words = ("blink", "--data", shared_data / "blink", "--model", model, "--backend", "classical", *tasks)
    assert command("run", *words, "--out", tmp_path / "run", "--json").code == 0
    out = command("compare", tmp_path / "run", "--pairs", "specialist:arbiter", "--json").out
    counts = {name: differences(out, name)[0] for name in ("both answered", "none a", "none b", "helped", "harmed")}
    assert [row["value"] for row in counts.values()] == [6, 6, 0, 0, 0]
    assert {row["n"] for row in counts.values()} == {12}


@pytest.mark.shared_data
def test_two_published_models(command: Command, shared_data: Path) -> None:
    paths = [shared_data / "blink_outputs" / name for name in ("GPT4V", "GPT4o")]
    result = command("compare", *paths, "--benchmark", "blink", "--field", "stored", "--unanswered", "wrong", "--json")
    report = json.loads(result.out)
    (row,) = differences(result.out)
    assert (row["a"], row["b"], row["n"]) == ("GPT4V", "GPT4o", 1901)
    values = [report["solvers"][name]["metrics"]["accuracy_macro"] for name in ("GPT4V", "GPT4o")]
    sides = [differences(result.out, quantity)[0]["value"] for quantity in ("value a", "value b")]
    assert sides == pytest.approx(values)
    assert row["value"] == pytest.approx(values[1] - values[0])
    assert len(differences(result.out, metric="accuracy")) == 14
