"""Each server behaviour ends in a call that runs or in a typed fault; all behaviours are tested with `-m system`."""

import re
from pathlib import Path

import pytest

from bench._scripted_server import Behaviour, Scripted, Wanted, behaviours
from bench.conformity import Kind, main, measured
from tests.tables import cases

# The default selection tests only every `EVERY`-th behaviour.
EVERY = 9
ALL = behaviours()
# Google's client warns about an unknown finish reason.
pytestmark = pytest.mark.filterwarnings("ignore:.* is not a valid FinishReason:UserWarning")
PAGE = Path(__file__).parents[2] / "bench" / "results" / "conformity.md"


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(item, id=item.name, marks=() if place % EVERY == 0 else pytest.mark.system)
        for place, item in enumerate(ALL)
    ],
)
def test_a_behaviour_comes_to_what_is_wanted(behaviour: Behaviour, tmp_path: Path) -> None:
    result = measured(behaviour, tmp_path / "run")
    assert result.kind != "failed", result.details


def test_each_has_a_name_and_a_report_or_was_tried_here_and_stands_on_the_page() -> None:
    assert len({item.name for item in ALL}) == len(ALL) >= 60
    reported = re.compile(r"[\w.-]+/[\w.-]+(#\d+)?|tried here")
    assert [entry.reference for entry in ALL if not reported.fullmatch(entry.reference)] == []
    matches = re.findall(r"^\| (.+?) \| (?:\[|tried here)", PAGE.read_text(), re.MULTILINE)
    assert [re.sub(r"\\(.)", r"\1", name) for name in matches] == [value.name for value in ALL]
    assert "| failed |" not in PAGE.read_text()


@pytest.mark.parametrize(*cases(__file__, "less than what is wanted", reply=lambda row: Scripted(**row)))
def test_less_than_what_is_wanted_is_failed_and_without_a_word_silent(
    reply: Scripted, wants: Wanted, kind: Kind, silent: bool, tmp_path: Path
) -> None:
    result = measured(Behaviour(name="one", reference="a/b#1", wants=wants, reply=reply), tmp_path / "run")
    assert (result.kind, result.silent) == (kind, silent)


def test_the_page_is_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "quarkus", "--out", str(tmp_path / "page.md")]) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "page.md").read_text() + "\n"
    assert "1 behaviours: executed as received 0, repaired 1" in printed
    assert "(https://github.com/quarkiverse/quarkus-langchain4j/issues/2642)" in printed
