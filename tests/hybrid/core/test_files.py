import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hybrid.benchmarks.blink import BENCHMARK
from hybrid.cli._config_file import read_config
from hybrid.core.errors import HybridError
from hybrid.core.files import MAX_BYTES, read_small
from hybrid.plugins.prompt_texts import read_texts
from hybrid.report.tags import read_tags
from hybrid.solving.trust import read_trust
from tests.time_limits import join


def test_the_limit_is_the_last_size_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_small(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes") as raised:
        read_small(path, 4)
    assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, str(path))


def test_a_pipe_is_read_to_the_limit_and_no_further(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    numbers: list[int] = []

    def write() -> None:
        with pipe.open("wb", buffering=0) as file, suppress(BrokenPipeError):
            numbers.extend(file.write(b"x" * 1000) for _ in range(5000))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(OSError, match="more than 2,000 bytes"):
        read_small(pipe, 2000)
    join(writer)
    # The reader closed the pipe early, so most of the 5 MB was never written.
    assert sum(numbers) < 2_000_000


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("trust.json", read_trust),
        ("run.yaml", read_config),
        ("run.json", read_config),
        ("tags.json", read_tags),
        ("prompts.toml", lambda path: read_texts(BENCHMARK.texts_file, path)),
    ],
)
def test_a_file_that_cannot_be_what_is_wanted_is_one_line(
    tmp_path: Path, name: str, read: Callable[[Path], object]
) -> None:
    path = tmp_path / name
    path.touch()
    # A sparse file: it takes no space on the disk.
    os.truncate(path, MAX_BYTES + 1)
    with pytest.raises(HybridError, match="more than 67,108,864 bytes, too many for a file of this kind") as raised:
        read(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
