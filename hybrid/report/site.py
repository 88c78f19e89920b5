"""Writes a report as files for a browser, from disk or from any web server; pages need no network and no build step.

write_site(pages, Path("site"))        # then open site/index.html

    index.html                      the page; without scripts it shows conclusions and headline numbers
    assets/                         scripts and style
    data/site.js                    benchmarks, solvers, tags
    data/BENCHMARK/overview.js      the first page of a benchmark
    data/BENCHMARK/sections/ID.js   charts and tables of a section, and the questions behind its counts
    data/BENCHMARK/list.js          the list of its questions, by columns
    data/BENCHMARK/questions/0.js   its questions, several per file
    images/ab/SHA.png               the images, linked or copied from the store
    hybrid-report.json              marks the folder as a report, which the next report may replace
    live.json                       polled by the pages of a run in progress
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from hybrid.core.errors import DataError, UsageError
from hybrid.core.files import first_of_tree
from hybrid.core.images import ImageStore
from hybrid.core.machine_paths import hide_paths, hide_paths_in
from hybrid.report.columns import QuestionList
from hybrid.report.data_files import chunks, overview_values, script, section_values, wrapped
from hybrid.report.payload import BenchmarkPages, Pages, QuestionPage

MARKER = "hybrid-report.json"
FORMAT = 1
# The scripts in the order in which a browser runs them; each script uses earlier scripts.
SCRIPTS = (
    *(f"assets/{name}.js" for name in ("base", "data", "routes", "verdicts", "rows", "tables", "svg", "saving")),
    *(f"assets/{name}.js" for name in ("charts", "overview", "filters", "list", "pictures", "tags", "question")),
    *("assets/sheet.js", "assets/keys.js", "assets/live.js", "data/site.js", "assets/main.js"),
)

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SECTION = re.compile(r"[A-Za-z0-9-]+")
_IMAGE = re.compile(r"images/([0-9a-f]{2})/(\1[0-9a-f]{62})\.(?:jpg|jpeg|png|webp|gif|bmp|tif|tiff)")


def write_site(pages: Pages, out: Path) -> Path:
    """Write the files; return the path of `index.html`.

    Everything is written next to `out` and then moved into place at once, so an interrupt leaves `out` unchanged.

    Raises:
        UsageError: `out` is a file, or a folder that contains something other than a report.
        DataError: an image is not in the store.
        ValueError: inconsistent pages (a question without an entry for each solver, a duplicate key).
        OSError: the files cannot be written.
    """
    place = out.resolve()
    refuse_other(place)
    keys = [benchmark.key for benchmark in pages.benchmarks]
    ids = [[section.id for section in benchmark.overview.sections] for benchmark in pages.benchmarks]
    # A key becomes a folder and a part of links.
    of_sections = [("the id of a section", _SECTION, section_ids) for section_ids in ids]
    for what, pattern, names in [("the key of a benchmark", _KEY, keys), *of_sections]:
        for name in names:
            if not pattern.fullmatch(name) or names.count(name) > 1:
                raise ValueError(f"{name!r} cannot be {what}, or appears twice")
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.{uuid.uuid4().hex[:12]}")
    try:
        fresh.mkdir()
        _write(pages, fresh)
        _put_in_place(fresh, place)
    except OSError as error:
        raise _name_final_file(error, fresh, out) from error
    finally:
        # The temporary folder no longer exists if it was moved into place.
        shutil.rmtree(fresh, ignore_errors=True)
    return out / "index.html"


def _name_final_file(error: OSError, fresh: Path, out: Path) -> OSError:
    """Return the same error with the file's final name below `out`."""
    first = first_of_tree(error) if isinstance(error, shutil.Error) else error
    file = os.fspath(first.filename2 or first.filename or fresh)
    return OSError(first.errno, first.strerror, file.replace(os.fspath(fresh), os.fspath(out)))


def refuse_other(place: Path) -> None:
    """Raise `UsageError` if a place contains something other than a report, or is named like a page."""
    if place.suffix in (".html", ".htm") and not place.is_dir():
        raise UsageError(
            f"{place} is a page's name, but a report is a folder of pages; write -o {place.with_suffix('')}"
        )
    if not place.exists():
        return
    if not place.is_dir():
        raise UsageError(f"{place} is a file, but a report is a folder: give another path")
    try:
        marker = json.loads((place / MARKER).read_bytes())
    except (OSError, ValueError):
        marker = None
    is_report = isinstance(marker, dict) and marker.get("report") == "hybrid"
    if not is_report and any(place.iterdir()):
        raise UsageError(
            f"{place} contains something other than a report ({MARKER} is not there): choose another folder"
        )


def _put_in_place(fresh: Path, place: Path) -> None:
    """Replace a folder by another one, by renaming."""
    if not place.exists():
        fresh.rename(place)
        return
    older = place.with_name(f".{place.name}.{uuid.uuid4().hex[:12]}")
    place.rename(older)
    try:
        fresh.rename(place)
    except BaseException:
        older.rename(place)
        raise
    shutil.rmtree(older, ignore_errors=True)


def _write(pages: Pages, folder: Path) -> None:
    from jinja2 import Environment

    version = uuid.uuid4().hex[:12]
    package = files("hybrid.report")
    with as_file(package / "assets") as assets:
        shutil.copytree(assets, folder / "assets")
    template = Environment(autoescape=True).from_string((package / "templates" / "index.html").read_text("utf-8"))
    pages = dataclasses.replace(pages, made_by=hide_paths(pages.made_by))
    overviews = [hide_paths_in(benchmark.overview) for benchmark in pages.benchmarks]
    page = template.render(pages=pages, overviews=overviews, scripts=SCRIPTS)
    (folder / "index.html").write_text(page, "utf-8", errors="replace")
    bring = partial(_bring, ImageStore(pages.images), folder, set[str]())
    lists = [_write_benchmark(benchmark, folder, version, bring) for benchmark in pages.benchmarks]
    answers = sum(question_list.answers for question_list in lists)
    (folder / "data").mkdir(exist_ok=True)
    solver_names = [
        (benchmark.key, [solver.name for solver in benchmark.overview.solvers]) for benchmark in pages.benchmarks
    ]
    site = {
        # A browser stores notes under this id, so that different reports do not share them and a rewritten report keeps
        # them.
        "id": hashlib.sha256(json.dumps([pages.title, solver_names]).encode()).hexdigest()[:16],
        "title": pages.title,
        "heading": ": ".join([pages.title, *(" | ".join(overview.head) for overview in overviews if overview.head)]),
        "made_by": hide_paths(pages.made_by),
        "live": pages.live,
        "answers": answers,
        "tags": pages.tags,
        "benchmarks": [
            {
                "key": benchmark.key,
                "benchmark": benchmark.overview.benchmark,
                "title": benchmark.overview.title,
                "questions": len(question_list.ids),
                "sampled": question_list.sampled,
                "solvers": [{"name": solver.name, "role": solver.role} for solver in benchmark.overview.solvers],
            }
            for benchmark, question_list in zip(pages.benchmarks, lists, strict=True)
        ],
    }
    (folder / "data" / "site.js").write_bytes(script("site", version, site))
    if pages.live:
        (folder / "live.json").write_text(json.dumps({"version": version, "answers": answers}) + "\n")
    (folder / MARKER).write_text(json.dumps({"report": "hybrid", "format": FORMAT, "version": version}) + "\n")


def _write_benchmark(pages: BenchmarkPages, folder: Path, version: str, bring: partial[None]) -> QuestionList:
    """Write the pages of one benchmark; return the list of its questions."""
    # A page may leave the machine, so paths are hidden in the overview; texts of questions and replies are unchanged.
    place, overview = folder / "data" / pages.key, hide_paths_in(pages.overview)
    for name in ("questions", "sections"):
        (place / name).mkdir(parents=True)

    def put(name: str, values: Any) -> None:
        (place / f"{name}.js").write_bytes(script(f"{pages.key}/{name}", version, values))

    question_list, starts = QuestionList(len(overview.solvers), overview.by), []

    def collect_pages() -> Iterator[QuestionPage]:
        for page in pages.questions:
            question_list.add(page)
            yield page

    for number, (start, text, names) in enumerate(chunks(collect_pages())):
        bring(names)
        starts.append(start)
        data = wrapped(f"{pages.key}/questions/{number}", version, text)
        (place / "questions" / f"{number}.js").write_bytes(data)
    put("list", question_list.values(starts))
    rows = {name: row for row, name in enumerate(question_list.ids)}
    put("overview", overview_values(overview, rows))
    for section in overview.sections:
        bring(picture.file for picture in section.pictures if picture.file is not None)
        put(f"sections/{section.id}", section_values(section, rows))
    return question_list


def _bring(store: ImageStore, folder: Path, present: set[str], names: Iterable[str]) -> None:
    """Link or copy images from the store, each once; those in `present` are skipped.

    Raises `DataError` for an image that the store lacks, `ValueError` for an invalid name.
    """
    for name in names:
        if name in present:
            continue
        parts = _IMAGE.fullmatch(name)
        if parts is None:
            raise ValueError(f"{name[:120]!r} is not the path of an image: images/ab/SHA.png")
        source, target = store.path(parts[2]), folder / name
        if not source.is_file():
            raise DataError(f"image {parts[2][:12]} is not in the store {store.root}")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except OSError:
            # The target is on another disk, or its file system does not support links.
            shutil.copyfile(source, target)
        present.add(name)
