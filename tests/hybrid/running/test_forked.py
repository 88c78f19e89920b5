"""Work in a fork returns values and errors, and ends; the command line reads the data in a fork.

Each test runs in a separate program: the test process has threads, and then nothing is forked.
"""

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.time_limits import running_process

# Programs that the tests write or start.
TEXT = {
    "RUN": """
    from hybrid.cli import main

    threads, *words = sys.argv[1:]
    held = threading.Event()
    if threads == "threads":
        threading.Thread(target=held.wait).start()
    sys.argv = ["hybrid", "run", "blink", *words]
    try:
        main()
    finally:
        held.set()
        sys.stderr.write(f"{'pyarrow' in sys.modules}\\n")
""",
    "beside_another_thread_nothing_is_forked": """
    held = threading.Event()
    threading.Thread(target=held.wait).start()
    made = in_fork(iter([os.getpid()]))
    print(next(made) == os.getpid())
    held.set()
    """,
    "a_signal_ends_both": """
    def steps():
        try:
            print(os.getpid(), flush=True)
            signal.pause()
        finally:
            open(sys.argv[1], "w").close()
        yield 1

    with closing(in_fork(steps())) as made:
        next(made)
    """,
    "a_process_that_is_killed_is": """
    def steps():
        yield os.getpid()
        os.kill(os.getpid(), signal.SIGKILL)
        yield 2

    made = in_fork(steps())
    next(made)
    try:
        next(made)
    except Exception as error:
        print(type(error).__name__, error)
    """,
    "it_is_one_step_ahead_and": """
    ahead, said = os.pipe()

    def steps():
        try:
            yield 1
            os.write(said, b".")
            signal.pause()
        finally:
            os.write(1, b"the end ")

    with closing(in_fork(steps())) as made:
        next(made)
        os.read(ahead, 1)
    for _ in range(40):
        with closing(in_fork(steps())) as made:
            next(made)
    """,
    "errors_are_raised_with_their_words": """
    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(one)

    def failing(error):
        yield 1
        raise error

    for error in (DataError("no column"), FileNotFoundError(2, "not there", "a.json"), KeyError("q1"), Odd(1, 2)):
        made = in_fork(failing(error))
        next(made)
        try:
            next(made)
        except Exception as caught:
            told = " ".join([str(caught), *getattr(caught, "__notes__", ())])
            print(type(caught).__name__, "in failing" in told, str(caught).splitlines()[0])
    """,
    "values_and_open_files_come_out": """
    from pathlib import Path
    from hybrid.log.questions import QuestionSpool
    from hybrid.core.types import BrokenQuestion

    def steps():
        import colorsys
        yield os.getpid()
        spool = QuestionSpool(Path(sys.argv[1]))
        for name in "ab":
            spool.add(BrokenQuestion(name, "Jigsaw", "no picture"))
        yield spool.questions()

    sys.stdout.write("once ")
    with closing(in_fork(steps())) as made:
        assert next(made) != os.getpid()
        questions = next(made)
        assert next(made, "the end") == "the end"
    assert [one.id for one in questions.broken] == ["a", "b"]
    assert "colorsys" not in sys.modules
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        print("alone")
    """,
}

pytestmark = [pytest.mark.system, pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")]

PROGRAM = """
    import os, signal, sys, threading
    from contextlib import closing
    from hybrid.core.errors import DataError
    from hybrid.running.forked import in_fork
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background ignores it
"""


def program(body: str, *words: object) -> AbstractContextManager[Any]:
    code = textwrap.dedent(PROGRAM) + textwrap.dedent(body)
    return running_process(
        [sys.executable, "-c", code, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path.cwd(),
        # Buffered text at the fork must be printed once.
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )


def run_program(body: str, *words: object) -> str:
    with program(body, *words) as process:
        out, wrong = process.communicate()
    assert process.returncode == 0, wrong
    assert not wrong
    return out


def test_values_and_open_files_come_out_of_another_process_and_its_imports_stay_there(tmp_path: Path) -> None:
    assert run_program(TEXT["values_and_open_files_come_out"], tmp_path) == "once alone\n"


def test_errors_are_raised_with_their_words_and_defects_with_their_traceback() -> None:
    lines = run_program(TEXT["errors_are_raised_with_their_words"]).splitlines()
    assert lines[:2] == ["DataError False no column", "FileNotFoundError False [Errno 2] not there: 'a.json'"]
    assert lines[2:] == ["KeyError True 'q1'", "RuntimeError True Traceback (most recent call last):"]


def test_it_is_one_step_ahead_and_ends_wherever_it_is_when_it_is_closed() -> None:
    assert run_program(TEXT["it_is_one_step_ahead_and"]) == "the end " * 41


@pytest.mark.parametrize(
    "looks", ["", "module._open = lambda sock: next(first, None) or bool(sock.recv(1, socket.MSG_PEEK))"]
)
def test_an_interruption_does_not_fall_into_what_cleans_up(looks: str) -> None:
    """No interruption reaches the code that cleans up: neither a second interrupt in a step, nor the first one if the
    socket is closed before it arrives."""
    body = f"""
    import socket
    import hybrid.running.forked as module

    ahead, said = os.pipe()
    first = iter([True])

    def steps():
        try:
            yield 1
            os.write(said, b".")
            signal.pause()
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            os.write(1, b"the end")

    {looks}
    with closing(in_fork(steps())) as made:
        next(made)
        if not {looks!r}:
            os.read(ahead, 1)
    """
    assert run_program(body) == "the end"


def test_a_process_that_is_killed_is_an_error_that_says_how() -> None:
    body = TEXT["a_process_that_is_killed_is"]
    assert run_program(body).startswith("HybridError the process that reads the data ended too early (signal SIGKILL)")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_both(number: signal.Signals, tmp_path: Path) -> None:
    body = TEXT["a_signal_ends_both"]
    cleaned = tmp_path / "cleaned"
    with program(body, cleaned) as process:
        assert int(process.stdout.readline()) != process.pid
        os.kill(process.pid, number)
        # Reading ends when no process has the pipe open any more.
        process.stdout.read()
    assert process.returncode == -number
    assert cleaned.exists() == (number == signal.SIGINT)


def test_a_closed_terminal_is_left_to_the_parent() -> None:
    body = """
    def steps():
        os.kill(os.getpid(), signal.SIGHUP)
        yield os.getpid()

    with closing(in_fork(steps())) as made:
        print(next(made) != os.getpid(), signal.getsignal(signal.SIGHUP).name)
    """
    assert run_program(body) == "True SIG_DFL\n"


def test_beside_another_thread_nothing_is_forked() -> None:
    assert run_program(TEXT["beside_another_thread_nothing_is_forked"]) == "True\n"


RUN = TEXT["RUN"]


def test_the_command_line_reads_in_a_fork_and_writes_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fakes: Any
) -> None:
    data = fakes.blink_folder(tmp_path / "blink")
    folders = {}
    for number, threads in enumerate(("threads", "none")):
        monkeypatch.setenv("HYBRID_HOME", str(tmp_path / f"home{number}"))
        folder = folders[threads] = tmp_path / threads
        words = ("--data", data, "--task", "Jigsaw", "--solver", "chance", "--out", folder)
        with program(RUN, threads, *words) as process:
            _, text = process.communicate()
        assert process.returncode == 0, text
        assert text.splitlines()[-1] == str(threads == "threads")
    read, forked = ((folder / "questions.jsonl").read_bytes() for folder in folders.values())
    assert read == forked
