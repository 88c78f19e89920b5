"""Writes a report as files that a browser reads from disk or from any web server: no network, no build step.

write_site(pages, Path("site"))        # then open site/index.html
"""

from __future__ import annotations

from pathlib import Path

from hybrid.report.payload import Pages


def write_site(pages: Pages, out: Path) -> Path:
    """Write the files; the path of `index.html`. Raises `UsageError` where `out` holds something else."""
    raise NotImplementedError
