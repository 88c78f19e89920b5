"""A file that only grows: what was there stays, whatever happens while a line is written."""

import errno
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.log.journal import BLOCK, Journal
from hybrid.secrets import keep_secret


def test_lines_that_come_together_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lines.jsonl"
    journal = Journal(path)
    journal.append(b"1", b"2")
    journal.append()
    journal.append(b"3")
    assert path.read_bytes() == b"1\n2\n3\n"
    journal.close()


@given(st.lists(st.binary(max_size=4).filter(lambda line: b"\n" not in line), max_size=5), st.binary(max_size=3))
def test_a_line_without_its_end_is_cut_off(tmp_path: Path, whole: list[bytes], rest: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    kept = b"".join(line + b"\n" for line in whole)
    path.write_bytes(kept + rest.replace(b"\n", b""))
    Journal(path).close()
    assert path.read_bytes() == kept


@pytest.mark.parametrize("length", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_a_long_line_without_its_end_is_cut_off(tmp_path: Path, length: int) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"a\n" + b"x" * length)
    Journal(path).close()
    assert path.read_bytes() == b"a\n"


def test_a_file_that_is_one_line_without_its_end_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"x" * (BLOCK + 7))
    Journal(path).close()
    assert path.read_bytes() == b""


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    journal = Journal(path, durable=False)
    rows = [bytes([65 + number % 26]) * 5000 for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(journal.append, rows))
    journal.close()
    assert sorted(path.read_bytes().splitlines()) == sorted(rows)


def test_a_secret_is_not_written(tmp_path: Path) -> None:
    keep_secret("sk-journal-secret")
    journal = Journal(tmp_path / "lines.jsonl")
    journal.append(b'{"error": "401: sk-journal-secret is wrong"}')
    journal.close()
    assert (tmp_path / "lines.jsonl").read_bytes() == b'{"error": "401: [redacted] is wrong"}\n'


FULL = """
import resource, sys
from pathlib import Path
from hybrid.log.journal import Journal

journal = Journal(Path(sys.argv[1]))
journal.append(b"a" * 50)
resource.setrlimit(resource.RLIMIT_FSIZE, (80, resource.RLIM_INFINITY))
try:
    journal.append(b"b" * 50)
except OSError as error:
    print(error.errno)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append(b"c" * 50)
"""


@pytest.mark.system
def test_a_line_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk that is full: 29 of the 51 bytes can be written."""
    path = tmp_path / "lines.jsonl"
    ended = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], check=True, capture_output=True, text=True, timeout=60
    )
    assert ended.stdout == f"{errno.EFBIG}\n"
    assert path.read_bytes() == b"a" * 50 + b"\n" + b"c" * 50 + b"\n"
