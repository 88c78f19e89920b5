"""How the program ends: one line per error, no secret, no control character, and silence if stdout is closed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Programs that the tests write or start.
TEXT = {
    "a_full_disk_is_one_line": """import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
runpy.run_module('hybrid', run_name='__main__')""",
}

pytestmark = pytest.mark.system

SECRET = "zq81-the-key-of-somebody"  # noqa: S105


def started(*words: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    environment = {**os.environ, "SOME_API_KEY": SECRET}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, check=False, text=True, env=environment, timeout=300, **streams)


def hybrid(*words: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    return started("-m", "hybrid", *words, **options)


def in_process(words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run the program with an extra command that executes this Python code; return the finished process."""
    code = (
        "import hybrid.cli\n"
        "@hybrid.cli.cli.command('given')\n"
        f"def given():\n    {words}\n"
        "hybrid.cli.Commands.get_command = lambda self, context, name: given\n"
        "hybrid.cli.main()"
    )
    return started("-c", code, "given", **options)


@pytest.mark.parametrize(("torch", "frozen"), [("", "True\n"), ("sys.modules['torch'] = sys; ", "False\n")])
def test_the_end_does_not_collect_imported_objects_without_torch(torch: str, frozen: str) -> None:
    end = "atexit._run_exitfuncs(); print(gc.get_freeze_count() > 10_000)"
    assert in_process(f"import atexit, gc, sys; {torch}{end}").stdout == frozen


def test_an_error_of_the_system_is_one_line_with_the_file(tmp_path: Path, fakes: Any) -> None:
    photo = tmp_path / "photo.png"
    photo.write_bytes(fakes.encoded(fakes.pixels(1)))
    folder = tmp_path / "folder"
    folder.mkdir()
    result = hybrid("tools", "run", "markers", photo, "--picture", folder / "absent" / "x.png")
    assert (result.returncode, result.stderr) == (
        2,
        f"hybrid: {folder / 'absent' / 'x.png'}: No such file or directory\n",
    )
    assert result.stdout
    result = hybrid("tools", "gallery", folder, "-o", photo)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1


def test_a_full_disk_is_one_line_with_the_file(tmp_path: Path, hybrid_home: Path, fakes: Any) -> None:
    photo = tmp_path / "photo.png"
    photo.write_bytes(fakes.encoded(fakes.pixels(1, (200, 200))))
    process = started("-B", "-c", TEXT["a_full_disk_is_one_line"], "tools", "run", "markers", photo)
    assert process.returncode == 2
    assert process.stderr.startswith("hybrid: ")
    assert process.stderr.endswith(": File too large\n")
    assert "Traceback" not in process.stderr
    assert not [path for path in hybrid_home.rglob("*") if path.is_file()]


def test_nobody_sees_the_progress_is_no_reason_to_stop() -> None:
    read, write = os.pipe()
    os.close(read)
    words = "import sys, click; print('x' * 100_000, file=sys.stderr, flush=True); click.echo('result')"
    try:
        client = in_process(words, stderr=write)
    finally:
        os.close(write)
    assert (client.returncode, client.stdout) == (0, "result\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_results_that_cannot_be_written_are_an_error(unbuffered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        result = hybrid("solvers", "list", stdout=full)
    assert result.returncode == 2
    assert result.stderr == "hybrid: stdout: No space left on device; free some space and repeat the command\n"


def test_progress_on_a_full_disk_is_no_reason_to_stop() -> None:
    with Path("/dev/full").open("w") as full:
        words = "import sys, click; print('x', file=sys.stderr, flush=True); click.echo('result')"
        client = in_process(words, stderr=full)
    assert (client.returncode, client.stdout) == (0, "result\n")


def test_no_secret_and_no_escape_reaches_the_terminal(tmp_path: Path) -> None:
    """The terminal receives neither the secret from another program's variable nor the escape sequence in a foreign
    file name."""
    evil = tmp_path / f"{SECRET}\x1b]0;title\x07\x9b.png"
    evil.write_bytes(b"no image")
    result = hybrid("tools", "run", "markers", evil)
    assert result.returncode == 2
    assert "/[redacted]\\u001b]0;title\\u0007\\u009b.png: these 8 bytes" in result.stderr
    assert SECRET not in result.stderr + result.stdout
    assert not {"\x1b", "\x07", "\x9b"} & set(result.stderr + result.stdout)


def test_a_defect_is_a_traceback_without_secrets() -> None:
    client = in_process(f"raise RuntimeError('{SECRET}')")
    assert client.returncode == 1
    assert client.stderr.startswith("Traceback")
    assert client.stderr.endswith("RuntimeError: [redacted]\n")
    assert SECRET not in client.stderr


def test_a_thread_that_fails_and_a_log_show_no_secret() -> None:
    words = (
        f"import threading, logging; logging.warning('{SECRET}'); t = threading.Thread(target=int, args=('{SECRET}',));"
    )
    client = in_process(f"{words} t.start(); t.join()")
    assert client.returncode == 0
    assert client.stderr.count("[redacted]") == 2
    assert SECRET not in client.stderr


def test_a_connection_that_breaks_is_no_closed_stdout() -> None:
    """A broken connection is reported as an error; click alone would exit silently with code 1 for any broken pipe."""
    client = in_process("raise BrokenPipeError(32, 'Broken pipe')")
    assert client.returncode == 2
    assert client.stderr == "hybrid: a connection was closed by the other side ([Errno 32] Broken pipe)\n"


@pytest.mark.parametrize("closed", [1, 2])
def test_a_program_without_a_stream_runs(closed: int) -> None:
    command = f"exec {closed}>&-; exec {sys.executable} -m hybrid --version"
    result = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0
