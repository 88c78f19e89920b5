"""A format that an installed package offers in the entry-point group `hybrid.exports`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid import plugins
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.registry import load, names

EXPORTER = """
from hybrid.exporting.base import Exporter, Written


class Lines(Exporter):
    form = "lines"
    about = "the names of the solvers"

    def export(self, run, path, options):
        path.write_text("\\n".join(run.solvers))
        return Written((path,))


EXPORTER = Lines()
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages in which one offers the format `lines`."""
    facts = tmp_path / "lined-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: lined\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[hybrid.exports]\nlines = lined_format\n")
    (tmp_path / "lined_format.py").write_text(EXPORTER)
    monkeypatch.syspath_prepend(tmp_path)
    plugins._entry_points.cache_clear()
    yield facts
    plugins._entry_points.cache_clear()


@pytest.mark.system
@pytest.mark.usefixtures("site")
def test_it_is_found_beside_our_own_and_writes_a_run(traced: Path, tmp_path: Path) -> None:
    assert {"lines", "parquet", "inspect"} < set(names("hybrid.exporting"))
    written = load("hybrid.exporting", "lines").export(ExportedRun.at(traced), tmp_path / "out", ExportOptions())
    assert [path.read_text() for path in written.paths] == ["specialist\nchance"]
