"""Drawing many questions shows its progress."""

import pytest

from hybrid.benchmarks._shared import samples
from hybrid.benchmarks._shared.samples import LONG_TASK, indices_to_draw
from hybrid.display.notes import quietly


def test_many_questions_show_their_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "NOTE_S", 0.0)
    assert list(indices_to_draw("Jigsaw", LONG_TASK)) == list(range(LONG_TASK))
    first, *others = capsys.readouterr().err.splitlines()
    assert first == f"drawing {LONG_TASK} questions of Jigsaw ..."
    assert others[3] == f"drawing {LONG_TASK} questions of Jigsaw: 3 done"
    assert list(indices_to_draw("Jigsaw", LONG_TASK - 1)) == list(range(LONG_TASK - 1))
    with quietly():
        assert len(list(indices_to_draw("Jigsaw", LONG_TASK))) == LONG_TASK
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["actiview", "blink", "hvsbench", "mm_sap", "mvp_bench"])
def test_every_generator_shows_it(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    from hybrid.plugins.registry import load

    labels: list[str] = []

    def note(label: str, count: int) -> range:
        labels.append(label)
        return range(count)

    bench = load("hybrid.benchmarks", name)
    monkeypatch.setattr(f"hybrid.benchmarks.{name}.sample.indices_to_draw", note)
    bench.generate(tmp_path, bench.card.sample_tasks[:1], 1, 0)
    assert labels
