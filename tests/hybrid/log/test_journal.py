"""A file that only grows: earlier lines survive any failure while a line is written."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.secrets import keep_secret
from hybrid.log.journal import Journal


@given(st.lists(st.binary(max_size=4).filter(lambda line: b"\n" not in line), max_size=5), st.binary(max_size=3))
def test_a_line_without_its_end_is_cut_off(tmp_path: Path, lines: list[bytes], rest: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    text = b"".join(line + b"\n" for line in lines)
    path.write_bytes(text + rest.replace(b"\n", b""))
    Journal(path).close()
    assert path.read_bytes() == text


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
    """A line that does not fit on the disk is removed again. A file size limit simulates a full disk, on which 29 of
    the 51 bytes can be written."""
    path = tmp_path / "lines.jsonl"
    result = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], check=True, capture_output=True, text=True, timeout=300
    )
    assert result.stdout == f"{errno.EFBIG}\n"
    assert path.read_bytes() == b"a" * 50 + b"\n" + b"c" * 50 + b"\n"
