"""The source of a benchmark's questions (`--data hub | sample | DIR`), and the questions that `--limit` selects."""

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

# Manifest key for the `reading_key` of the command that read exactly the run's questions; missing if no command did.
READ_BY = "taken"


# Maps a question to the questions to ask in its place.
Variants = Callable[[AnyQuestion], Iterable[AnyQuestion]]


@dataclass(frozen=True)
class Mounted:
    """A benchmark's data in a folder, and the manifest's facts about it."""

    source: Source
    origin: Mapping[str, Json]

    @property
    def is_sample(self) -> bool:
        """Whether the questions were generated, so that scores on them are not a benchmark result."""
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
        UsageError: an unknown split, task, setting or setting value, a missing folder, or a data set that the hub
            does not provide.
        DataError: the folder or the data set does not hold this benchmark.
    """
    card = benchmark.card
    split_name = chosen_split(card, split, tasks)
    values = card.resolve_settings(settings)
    folder, origin = _folder(benchmark, data, split_name, tasks, limit, seed)
    if images_root is not None and not (benchmark.takes_images_root and images_root.expanduser().is_dir()):
        reason = (
            "folder not found"
            if benchmark.takes_images_root
            else f"{card.name} reads no images from another folder; leave the option out"
        )
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
    """Return the requested split; by default, the card's first. Raises `UsageError` for an unknown split or task."""
    split_name = split or card.splits[0]
    of_tasks = [("task", task, tuple(card.tasks)) for task in tasks if card.tasks]
    for what, name, choices in (("split", split_name, tuple(card.splits)), *of_tasks):
        if name not in choices:
            hint = did_you_mean(name, choices)
            available = ", ".join(choices)
            raise UsageError(f"--{what} {name}: {card.name} has no {what} {name!r}{hint}; available: {available}")
    return split_name


def refuse_ungenerated(card: BenchmarkCard, tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the tasks to generate, by default all. Raises `UsageError` for a task that cannot be generated."""
    if not card.sample_tasks:
        raise UsageError(f"--data sample: {card.name} has no generated questions")
    if unknown := [task for task in tasks if task not in card.sample_tasks]:
        available = ", ".join(card.sample_tasks)
        hint = did_you_mean(unknown[0], card.sample_tasks)
        raise UsageError(
            f"--data sample: --task {', '.join(unknown)} cannot be generated{hint}; available: {available}"
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
        raise UsageError(f"--data {data}: this is a file; give the folder with the benchmark's data")
    if not folder.is_dir():
        hint = did_you_mean(data, ("hub", "sample")) or " (or use hub or sample)"
        raise UsageError(f"--data {data}: folder not found{hint}")
    if has_mark(folder):
        # A generated folder that was copied may have been edited, so it is identified by its fingerprint.
        return folder, {"kind": "sample", "folder": True}
    return folder, {"kind": "folder"}


# Maximum number of subfolders to search for data that are not in the folder itself.
MAX_FOLDERS = 100


def _rather(benchmark: Benchmark, source: Source) -> str:
    """Return a hint if a folder lacks a benchmark's data: a file or folder with the data, or a benchmark that fits."""
    if benchmark.accepts_file:
        # Look for tables in the folder and its subfolders, as in a custom data set.
        candidates = itertools.islice(itertools.chain(source.folder.iterdir(), source.folder.glob("*/*")), MAX_FOLDERS)
        endings = (".parquet", ".jsonl", ".csv", ".tsv")
        if files := sorted(path for path in candidates if path.suffix in endings and path.is_file()):
            return f"say: hybrid run {files[0]}"
    inside = sorted(path for path in itertools.islice(source.folder.iterdir(), MAX_FOLDERS) if path.is_dir())
    around = [] if benchmark.searches_subfolders else [source.folder.absolute().parent]
    for place in (*inside, *around):
        if _holds(benchmark, replace(source, folder=place)):
            return f"they are in {place}: use --data {place}"
    other: Benchmark
    for name, other in load_each("hybrid.benchmarks"):
        card = other.card
        looked_in = replace(source, split=card.splits[0], tasks=(), settings=card.resolve_settings({}))
        # If a benchmark searches subfolders, try it only if there are tables: the given folder may be a home folder.
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
    return "or use --data hub" if card.hub_id else f"`hybrid benchmarks show {card.name}` says where they are"


def _holds(benchmark: Benchmark, source: Source) -> bool:
    """Return whether the source holds the benchmark's data."""
    try:
        return bool(benchmark.tasks(source))
    except (DataError, OSError):
        return False


def schema_mismatch(benchmark: Benchmark, mounted: Mounted) -> str | None:
    """Describe how the user's data deviate from the card, or return None if they match."""
    return benchmark.schema_mismatch(mounted.source) if mounted.origin.get("kind") in ("folder", "file") else None


def refuse_unlike(benchmark: Benchmark, mounted: Mounted, data: str, allowed: Collection[str]) -> None:
    """Raise `UsageError` for data that deviate strongly from the benchmark's, unless `partial` is allowed."""
    name = benchmark.card.short_title
    if "partial" not in allowed and (reason := schema_mismatch(benchmark, mounted)):
        raise UsageError(
            f"--data {data}: this may not be {name}: it has {reason}. For questions of your own, use hybrid run FILE "
            f"(hybrid data check FILE shows how they are read). With --allow partial, the data are used as {name} "
            "anyway"
        )


def fingerprint(paths: Iterable[Path], root: Path) -> str:
    """Return one sha256 over the names and contents of the files that determine the questions."""
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
    """Return the questions in the order of the data; with a limit, that many base questions, round-robin over tasks.

    Related questions (variants of one question, or a pair of images) are always taken together. Only as much data is
    read as the limit needs, and questions are kept in a file next to the images, not in memory.

    Args:
        benchmark: the benchmark of the questions.
        source: its data.
        limit: number of base questions; None for all.
        variants: the questions to ask in place of each question.
        only: ids of the questions to select among those within the limit; empty for all. The id of a base question
            also selects its variants.

    Raises:
        UsageError: an unknown id in `only`.
        DataError: an id appears twice, or there is no question.
        OSError: the questions cannot be saved next to the images.
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
        # A plug-in benchmark may read picture files by other means, so assume that it read a picture file.
        readable.picture_files = files_read() - start or int(is_outside("hybrid.benchmarks", benchmark.card.name))
    finally:
        spool.close()
    if not readable:
        raise DataError(f"{source.folder} contains no question of the split {source.split}")
    return readable


def _with_clusters(questions: RecordedQuestions, clusters: Mapping[str, str], root: Path) -> RecordedQuestions:
    """Give questions that share pictures the same cluster; return all questions."""
    clustered = QuestionSpool(root)
    for question in questions:
        clustered.add(replace(question, cluster=clusters.get(question.unit, question.cluster)))
    return clustered.questions()


def _names_of(question: AnyQuestion) -> set[str]:
    """Return the ids that select a question: its own id and that of its base question."""
    return {question.id, question.base} if isinstance(question, Question) else {question.id}


def _unknown_id(name: str, source: Source, limit: int | None, ids: Collection[str]) -> str:
    """Return the message for an id that is not among the questions read."""
    among = f"the {how_many(len(ids))}" + ("" if limit is None else " of --limit")
    of_tasks = f", task {', '.join(source.tasks)}" if len(source.tasks) == 1 else ""
    hint = did_you_mean(name, ids) or next((f"; an id is such as {example}" for example in sorted(ids)), "")
    return f"--only {name}: question not found among {among}{of_tasks}{hint}"


def _limit_questions(benchmark: Benchmark, source: Source, limit: int | None) -> Iterator[tuple[int, AnyQuestion]]:
    """Yield the questions within a limit, each with the index of its task."""
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
    """Return a generated question under an id that no question of its benchmark has."""
    return replace(question, id=f"{ID_PREFIX}{question.id}")


def reading_key(
    benchmark: Benchmark, limit: int | None, picture_files: int = 0, only: Sequence[str] = ()
) -> dict[str, Json]:
    """Return the limit, the ids of `--only` and the hash of the reading code.

    Together with a run's identity they determine which questions are read. `picture_files`, the number of pictures read
    from separate files, is included because the identity does not cover those files.
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
    """Return the questions saved in the run if they are exactly those that this command would read; else None.

    This requires a manifest with the same identity (including the data's fingerprint), and questions saved by a command
    with the same limit and code. No pictures may have been read from separate files, which may have changed.
    """
    try:
        manifest, key = folder.manifest, reading_key(benchmark, limit, only=only)
        if difference(manifest["identity"], identity) or manifest.get(READ_BY) != key:
            return None
        recorded, wrong = folder.readable_questions()
    except (DataError, OSError):
        return None
    return recorded if recorded and not wrong else None


# Maximum number of unusable rows that a message names.
SHOWN_BROKEN = 5


def refuse_broken(broken: Sequence[BrokenQuestion], option: str) -> None:
    """Raise `DataError` naming the first unusable rows, if there are any."""
    if broken:
        details = "".join(f"\n  {question.id}: {question.error}" for question in broken[:SHOWN_BROKEN])
        more = f"\n  and {len(broken) - SHOWN_BROKEN} more" if len(broken) > SHOWN_BROKEN else ""
        raise DataError(f"{option}: {len(broken)} rows cannot be used:{details}{more}")
