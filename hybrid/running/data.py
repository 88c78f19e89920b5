"""Where a benchmark's questions come from: `--data hub | sample | DIR`, and which of them `--limit` takes."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid.benchmarks.base import Benchmark, Source
from hybrid.benchmarks.card import BenchmarkCard
from hybrid.core.errors import DataError, UsageError, did_you_mean
from hybrid.core.generated_mark import ID_PREFIX
from hybrid.core.image_clusters import SamePictures
from hybrid.core.images import ImageStore, files_read, home
from hybrid.core.types import BrokenQuestion, Json, Question
from hybrid.display.terminal import how_many
from hybrid.log.folder import RunFolder
from hybrid.log.manifest import difference
from hybrid.log.questions import AnyQuestion, QuestionSpool, RecordedQuestions
from hybrid.plugins.registry import is_outside, load_each, module_of
from hybrid.running.hub import fetch, is_hub
from hybrid.serving.sources import ours

# In a manifest: `reading_key` of the command whose questions are all that the run has; missing where there is none.
READ_BY = "taken"


# From a question to all that is asked in its place.
Variants = Callable[[AnyQuestion], Iterable[AnyQuestion]]


@dataclass(frozen=True)
class Mounted:
    """A benchmark's data in a folder, and what the manifest says of it."""

    source: Source
    origin: Mapping[str, Json]

    @property
    def is_sample(self) -> bool:
        """Whether the questions were generated: never a benchmark result."""
        return self.origin.get("kind") == "sample"


def mount(
    benchmark: Benchmark,
    data: str,
    *,
    split: str | None,
    tasks: Sequence[str],
    settings: Mapping[str, str],
    store: ImageStore,
    limit: int | None = None,
    seed: int = 0,
    images_root: Path | None = None,
) -> Mounted:
    """Resolve `--data`, `--split`, `--task`, `--setting` and `--images-root`.

    Raises:
        UsageError: an unknown split, task, setting or value of one, a folder that is not there, or a data set that
            the hub does not give.
        DataError: the folder or the data set does not hold this benchmark.
    """
    card = benchmark.card
    split_name = chosen_split(card, split, tasks)
    values = card.resolve_settings(settings)
    folder, origin = _folder(benchmark, data, split_name, tasks, limit, seed)
    if images_root is not None and not (benchmark.takes_images_root and images_root.expanduser().is_dir()):
        reason = "there is no such folder" if benchmark.takes_images_root else f"{card.name} says where its images lie"
        raise UsageError(f"--images-root {images_root}: {reason}")
    root = images_root and images_root.expanduser()
    source = Source(folder, store, split_name, (), values, images_root=root, generated=origin["kind"] == "sample")
    label = f"{origin['id']} at {str(origin['revision'])[:12]}" if is_hub(data) else ""
    try:
        present = benchmark.tasks(source)
    except DataError as error:
        if label:
            raise DataError(f"{label}: {error}") from error
        raise DataError(f"{error}; {_rather(benchmark, source)}" if folder.is_dir() else str(error)) from error
    missing = [task for task in tasks if task not in present]
    if missing:
        raise UsageError(f"{label or folder} has no data for {', '.join(missing)}; it has: {', '.join(present)}")
    return Mounted(replace(source, tasks=tuple(task for task in present if not tasks or task in tasks)), origin)


def chosen_split(card: BenchmarkCard, split: str | None, tasks: Sequence[str]) -> str:
    """The split that is asked for, by default the card's first. Raises `UsageError` where it or a task is unknown."""
    split_name = split or card.splits[0]
    of_tasks = [("task", task, tuple(card.tasks)) for task in tasks if card.tasks]
    for what, name, choices in (("split", split_name, tuple(card.splits)), *of_tasks):
        if name not in choices:
            hint = did_you_mean(name, choices)
            available = ", ".join(choices)
            raise UsageError(f"--{what} {name}: {card.name} has no {what} {name!r}{hint}; there are: {available}")
    return split_name


def refuse_ungenerated(card: BenchmarkCard, tasks: Sequence[str]) -> tuple[str, ...]:
    """The tasks to generate, all by default. Raises `UsageError` for one that cannot be generated."""
    if not card.sample_tasks:
        raise UsageError(f"--data sample: {card.name} has no generated questions")
    if unknown := [task for task in tasks if task not in card.sample_tasks]:
        available = ", ".join(card.sample_tasks)
        hint = did_you_mean(unknown[0], card.sample_tasks)
        raise UsageError(
            f"--data sample: --task {', '.join(unknown)} cannot be generated{hint}; there are: {available}"
        )
    return tuple(tasks) or card.sample_tasks


def _folder(
    benchmark: Benchmark, data: str, split: str, tasks: Sequence[str], limit: int | None, seed: int
) -> tuple[Path, dict[str, Json]]:
    from hybrid.running.generated import generate, has_mark, sample_size

    card = benchmark.card
    if is_hub(data):
        copy = fetch(benchmark, split, tasks, data.partition("@")[2] or None)
        return copy.folder, {"kind": "hub", "id": copy.id, "revision": copy.revision}
    if data == "sample":
        task_names = refuse_ungenerated(card, tasks)
        per_task = sample_size(card, len(task_names), limit)
        folder = generate(benchmark, home() / "samples", task_names, per_task, seed)
        size: dict[str, Json] = {} if card.sample_extends else {"per_task": per_task}
        return folder, {"kind": "sample", "seed": seed, **size}
    folder = Path(data).expanduser()
    if benchmark.accepts_file and folder.is_file():
        return folder, {"kind": "sample", "folder": True} if has_mark(folder) else {"kind": "file"}
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--data {data}: this is a file; give the folder that the benchmark's data lie in")
    if not folder.is_dir():
        hint = did_you_mean(data, ("hub", "sample")) or " (or say hub or sample)"
        raise UsageError(f"--data {data}: there is no such folder{hint}")
    if has_mark(folder):
        # Made here and copied: it may have been changed, so that its fingerprint says what it is.
        return folder, {"kind": "sample", "folder": True}
    return folder, {"kind": "folder"}


# How many folders of one are looked into for data that were not found in it.
MAX_FOLDERS = 100


def _rather(benchmark: Benchmark, source: Source) -> str:
    """A hint where a folder does not hold a benchmark's data: a folder near it that does, or another benchmark."""
    if benchmark.accepts_file:
        # The tables in the folder and in those below it, as a data set of one's own may have them.
        candidates = itertools.islice(itertools.chain(source.folder.iterdir(), source.folder.glob("*/*")), MAX_FOLDERS)
        endings = (".parquet", ".jsonl", ".csv", ".tsv")
        if files := sorted(path for path in candidates if path.suffix in endings and path.is_file()):
            return f"say: hybrid run {files[0]}"
    inside = sorted(path for path in itertools.islice(source.folder.iterdir(), MAX_FOLDERS) if path.is_dir())
    around = [] if benchmark.searches_subfolders else [source.folder.absolute().parent]
    for place in (*inside, *around):
        if _holds(benchmark, replace(source, folder=place)):
            return f"they are in {place}: say --data {place}"
    other: Benchmark
    for name, other in load_each("hybrid.benchmarks"):
        card = other.card
        looked_in = replace(source, split=card.splits[0], tasks=(), settings=card.resolve_settings({}))
        # A benchmark that looks below is asked only where there is something to see: a home folder may be given.
        is_plausible = not other.searches_subfolders or any(
            any(source.folder.glob(form)) for form in ("*.parquet", "*/*.parquet")
        )
        if (
            name != benchmark.card.name
            and is_plausible
            and _holds(other, looked_in)
            and other.schema_mismatch(looked_in) is None
        ):
            return f"it holds {card.short_title} data: hybrid run {name} --data {source.folder}"
    card = benchmark.card
    return "or say --data hub" if card.hub_id else f"`hybrid benchmarks show {card.name}` says where they are"


def _holds(benchmark: Benchmark, source: Source) -> bool:
    """Whether these are the benchmark's data."""
    try:
        return bool(benchmark.tasks(source))
    except (DataError, OSError):
        return False


def schema_mismatch(benchmark: Benchmark, mounted: Mounted) -> str | None:
    """How the user's own data differ from those of the card; None where they may be these."""
    return benchmark.schema_mismatch(mounted.source) if mounted.origin.get("kind") in ("folder", "file") else None


def refuse_unlike(benchmark: Benchmark, mounted: Mounted, data: str, allowed: Collection[str]) -> None:
    """Raise `UsageError` for data that are far from the benchmark's own, unless `partial` is allowed."""
    name = benchmark.card.short_title
    if "partial" not in allowed and (reason := schema_mismatch(benchmark, mounted)):
        raise UsageError(
            f"--data {data}: is this {name}? It has {reason}. Questions of your own: hybrid run FILE (hybrid data "
            f"check FILE shows how they are read); as {name} all the same: --allow partial"
        )


def fingerprint(paths: Iterable[Path], root: Path) -> str:
    """One sha256 over the names and contents of the files that decide the questions."""
    total = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        name = path.relative_to(root) if path.is_relative_to(root) else path.name
        total.update(f"{name}\x1f{content}\x1e".encode())
    return total.hexdigest()


def questions(
    benchmark: Benchmark,
    source: Source,
    limit: int | None,
    variants: Variants = lambda question: (question,),
    only: Sequence[str] = (),
) -> RecordedQuestions:
    """The questions in the order of the data; with a limit so many base questions, round-robin over tasks.

    What belongs together (variants of a question, a pair of images) is taken whole. Only as much of the data is read
    as the limit needs, and none of it stays in memory: the questions lie in a file next to the images.

    Args:
        benchmark: whose questions.
        source: its data.
        limit: how many base questions; None for all.
        variants: what is asked in place of each question.
        only: ids of the questions to take, of those that the limit takes; empty for all. The id of a base question
            also takes its variants.

    Raises:
        UsageError: an id of `only` is not among them.
        DataError: an id appears twice, or there is no question at all.
        OSError: they cannot be kept next to the images.
    """
    spool, start, pictures = QuestionSpool(source.store.root), files_read(), SamePictures()
    requested_ids, ids = frozenset(only), set[str]()
    try:
        for rank, question in _limit_questions(benchmark, source, limit):
            if isinstance(question, Question):
                pictures.add(question)
            for variant in variants(question):
                names = _names_of(variant)
                ids |= names if requested_ids else set()
                if requested_ids and not requested_ids & names:
                    continue
                if not spool.add(variant, rank):
                    raise DataError(f"{source.folder}: the id {variant.id!r} appears twice")
        if unknown := [name for name in only if name not in ids]:
            raise UsageError(_unknown_id(unknown[0], source, limit, ids))
        readable = spool.questions()
        if clusters := pictures.clusters:
            readable = _with_clusters(readable, clusters, source.store.root)
        # A benchmark from outside may read files in its own way.
        readable.picture_files = files_read() - start or int(is_outside("hybrid.benchmarks", benchmark.card.name))
    finally:
        spool.close()
    if not readable:
        raise DataError(f"{source.folder} holds no question of the split {source.split}")
    return readable


def _with_clusters(questions: RecordedQuestions, clusters: Mapping[str, str], root: Path) -> RecordedQuestions:
    """The questions again, with the clusters of those that share pictures, which were joined once for all."""
    clustered = QuestionSpool(root)
    for question in questions:
        clustered.add(replace(question, cluster=clusters.get(question.unit, question.cluster)))
    return clustered.questions()


def _names_of(question: AnyQuestion) -> set[str]:
    """The ids by which a question can be chosen: its own, and that of its base question."""
    return {question.id, question.base} if isinstance(question, Question) else {question.id}


def _unknown_id(name: str, source: Source, limit: int | None, ids: Collection[str]) -> str:
    """The message for an id that is not among the questions read."""
    among = f"the {how_many(len(ids))}" + ("" if limit is None else " of --limit")
    of_tasks = f", task {', '.join(source.tasks)}" if len(source.tasks) == 1 else ""
    hint = did_you_mean(name, ids) or next((f"; an id is such as {each}" for each in sorted(ids)), "")
    return f"--only {name}: there is no such question among {among}{of_tasks}{hint}"


def _limit_questions(benchmark: Benchmark, source: Source, limit: int | None) -> Iterator[tuple[int, AnyQuestion]]:
    """The questions that a limit takes, each with the place of its task."""
    per_task = (benchmark.questions(replace(source, tasks=(task,))) for task in source.tasks)
    streams = [itertools.groupby(stream, key=lambda question: question.unit) for stream in per_task]
    total = 0
    live = list(range(len(streams)))
    while live and (limit is None or total < limit):
        for place in live[:1] if limit is None else list(live):
            if limit is not None and total >= limit:
                break
            if (grouped := next(streams[place], None)) is None:
                live.remove(place)
                continue
            unit = [*map(mark_generated, grouped[1])] if source.generated else [*grouped[1]]
            yield from ((place, question) for question in unit)
            total += len({question.base if isinstance(question, Question) else question.id for question in unit})


def mark_generated(question: AnyQuestion) -> AnyQuestion:
    """A generated question under an id that no question of its benchmark has."""
    return replace(question, id=f"{ID_PREFIX}{question.id}")


def reading_key(
    benchmark: Benchmark, limit: int | None, picture_files: int = 0, only: Sequence[str] = ()
) -> dict[str, Json]:
    """The limit, the ids of `--only` and the hash of the reading code.

    With a run's identity they decide which questions are read.

    So do pictures in files of their own, which the identity does not know: how many were read.
    """
    module = module_of("hybrid.benchmarks", benchmark.card.name)
    selection: dict[str, Json] = {"limit": limit, "code": ours().sha256((__name__, module))[:12]}
    selection |= {"only": sorted(only)} if only else {}
    return {**selection, "picture_files": picture_files} if picture_files else selection


def recorded_questions(
    folder: RunFolder,
    identity: Mapping[str, Json],
    benchmark: Benchmark,
    limit: int | None,
    only: Sequence[str] = (),
) -> RecordedQuestions | None:
    """The questions as the run holds them, where these are whole and just those that this command would read again.

    That is so where the manifest is of the same identity (the data's fingerprint is part of it) and the file holds what
    a command of the same limit and the same code took, without a picture that lies in a file of its own, which may have
    changed. None where anything is otherwise.
    """
    try:
        manifest, key = folder.manifest, reading_key(benchmark, limit, only=only)
        if difference(manifest["identity"], identity) or manifest.get(READ_BY) != key:
            return None
        recorded, wrong = folder.readable_questions()
    except (DataError, OSError):
        return None
    return recorded if recorded and not wrong else None


# Rows that cannot be used and are named in one message.
SHOWN_BROKEN = 5


def refuse_broken(broken: Sequence[BrokenQuestion], option: str) -> None:
    """Raise `DataError` that names the first rows that cannot be used, where there are any."""
    if broken:
        details = "".join(f"\n  {question.id}: {question.error}" for question in broken[:SHOWN_BROKEN])
        more = f"\n  and {len(broken) - SHOWN_BROKEN} more" if len(broken) > SHOWN_BROKEN else ""
        raise DataError(f"{option}: {len(broken)} rows cannot be used:{details}{more}")
