"""The programs of `bench.peers` answer every request, and equal networks give equal numbers."""

import json
from pathlib import Path

import pytest

from bench.peers import SAME_NUMBERS, PeerRun, check_answers, main, with_ratios


@pytest.mark.system
def test_programs_answer_the_same_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is of the extra local")
    # Programs whose package is not installed are left out, and the command says so.
    programs = ("loader", "http", "litserve", "inspect", "hybrid")
    words = [word for name in programs for word in ("--program", name)]
    main([*words, "--work", "detection", "--images", "4", "--repeat", "1", "--json", str(tmp_path / "runs.json")])
    runs = json.loads((tmp_path / "runs.json").read_text())
    printed = capsys.readouterr().out
    assert {"loop", "loader", "http", "hybrid"} <= {run["program"] for run in runs}
    for name in programs:
        assert name in printed
    for run in runs:
        assert 0 < run["window_cpu_s"] < run["cpu_s"]
        assert 0 < run["window_s"] < run["wall_s"]


@pytest.mark.parametrize(
    ("program", "answers", "message"),
    [
        ("litserve", [0.25], "litserve answered 1 of 2 requests"),
        ("hybrid", [0.25], "hybrid answered 1 of 2 requests"),
        ("litserve", [0.25, 0.51], "litserve does not return what the loop returns"),
    ],
)
def test_a_program_that_answers_otherwise_is_refused(program: str, answers: list[float], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        check_answers("depth", program, answers, [0.25, 0.5])


def test_only_rounding_may_differ_in_answers_of_the_same_network() -> None:
    def is_accepted(program: str, answers: list[float]) -> bool:
        try:
            check_answers("depth", program, answers, [0.25, 0.5])
        except SystemExit:
            return False
        return True

    assert all(is_accepted(program, [0.25, 0.5000001]) for program in SAME_NUMBERS)
    assert not any(is_accepted(program, [0.25, 0.51]) for program in SAME_NUMBERS)
    # The program `hybrid` returns what its tool computes from the network's output, so its numbers differ.
    assert is_accepted("hybrid", [0.9, 0.8])


def test_ratios_are_to_the_loop_of_the_same_turn() -> None:
    turns = ((1.0, 3.0), (2.0, 4.0), (4.0, 40.0))
    runs = [run for loop, http in turns for run in (peer_run("loop", loop), peer_run("http", http))]
    loop, http = with_ratios(runs)
    assert (loop.cpu_s, loop.cpu_ratio) == (2.0, 1.0)
    assert (http.cpu_s, http.cpu_ratio, http.window_ratio) == (4.0, 3.0, 3.0)


def peer_run(program: str, seconds: float) -> PeerRun:
    return PeerRun("depth", program, seconds, seconds, seconds, seconds)
