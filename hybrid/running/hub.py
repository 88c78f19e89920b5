"""A benchmark's data set on the Hugging Face hub, downloaded at one commit into the hub's own cache.

    copy = fetch(load("hybrid.benchmarks", "blink"), "val", ("Jigsaw",))
    copy.folder, copy.revision

Only the files of the chosen tasks and split are downloaded. They are unchanged, so they are read by the same code as a
folder. The files are in `HF_HOME`; an interrupted download is resumed, and without a network (or with
`HF_HUB_OFFLINE=1`) a complete copy on disk is used. `HF_ENDPOINT` sets another server, `HF_TOKEN` the account.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.benchmarks.base import Benchmark
from hybrid.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

# The value of `--data`; `hub@REVISION` selects a branch, tag or commit.
HUB = "hub"
# Number of download attempts if the server fails; each attempt resumes where the previous one ended.
ATTEMPTS = 4
# Maximum number of a data set's files that a message names.
MAX_NAMED = 8


@dataclass(frozen=True)
class HubCopy:
    """A data set's files on disk: `folder` has the layout of the data set, `revision` is the commit's sha."""

    id: str
    folder: Path
    revision: str


@dataclass(frozen=True)
class HubFile:
    """A file that a run would read; `size` in bytes."""

    path: str
    size: int
    on_disk: bool


@dataclass(frozen=True)
class HubListing:
    """The files of a data set that a run would read; only the list was downloaded."""

    id: str
    revision: str
    gated: bool
    files: tuple[HubFile, ...]


def is_hub(data: str) -> bool:
    """Return whether the value of `--data` names the hub: `hub` or `hub@REVISION`."""
    return data == HUB or data.startswith(f"{HUB}@")


def fetch(
    benchmark: Benchmark, split: str, tasks: Sequence[str], revision: str | None = None, pause_s: float = 1.0
) -> HubCopy:
    """Return the files of these tasks (empty for all) on disk, downloading what is missing.

    Args:
        benchmark: its card names the data set.
        split: the split whose files are needed.
        tasks: the tasks to be asked.
        revision: a branch, tag or commit; by default the current main branch.
        pause_s: seconds before a failed download is retried, doubled each time.

    Raises:
        UsageError: the data set or revision does not exist, is gated or private, or cannot be reached.
        DataError: the data set lacks a file that the tasks need.
    """
    from huggingface_hub import snapshot_download

    hub_id, patterns = _hub_id(benchmark), benchmark.hub_files(split, tasks)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            place = snapshot_download(hub_id, repo_type="dataset", revision=revision, allow_patterns=[*patterns])
            break
        except Exception as error:
            if attempt == ATTEMPTS or not _may_pass(error):
                _explain(error, benchmark, hub_id, revision)
                raise
        time.sleep(pause_s * 2 ** (attempt - 1))
    # The hub's cache names a snapshot's folder after its commit.
    folder = Path(place)
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    _check_present(hub_id, folder.name, patterns, files, benchmark)
    return HubCopy(hub_id, folder, folder.name)


def listing(benchmark: Benchmark, split: str, tasks: Sequence[str], revision: str | None = None) -> HubListing:
    """Return the files that `fetch` would provide, with sizes. Raises what `fetch` raises."""
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.hf_api import RepoFile

    hub_id, patterns = _hub_id(benchmark), benchmark.hub_files(split, tasks)
    try:
        info = HfApi().dataset_info(hub_id, revision=revision)
        commit = str(info.sha)
        tree = HfApi().list_repo_tree(hub_id, recursive=True, revision=commit, repo_type="dataset")
        sizes = {entry.path: entry.size for entry in tree if isinstance(entry, RepoFile)}
    except Exception as error:
        _explain(error, benchmark, hub_id, revision)
        raise
    _check_present(hub_id, commit, patterns, list(sizes), benchmark)
    files = tuple(
        HubFile(path, size, isinstance(try_to_load_from_cache(hub_id, path, revision=commit, repo_type="dataset"), str))
        for path, size in sorted(sizes.items())
        if any(fnmatchcase(path, pattern) for pattern in patterns)
    )
    return HubListing(hub_id, commit, bool(info.gated), files)


def _hub_id(benchmark: Benchmark) -> str:
    card = benchmark.card
    if card.hub_id is None:
        origin = card.elsewhere or "its authors"
        raise UsageError(f"--data hub: {card.name} is not on the hub. Get it from {origin}, then give --data DIR")
    return card.hub_id


def _check_present(
    hub_id: str, commit: str, patterns: Sequence[str], files: Sequence[str], benchmark: Benchmark
) -> None:
    missing = [pattern for pattern in patterns if not any(fnmatchcase(path, pattern) for path in files)]
    if not missing:
        return
    names = ", ".join(missing[:MAX_NAMED]) + (f" and {len(missing) - MAX_NAMED} more" if missing[MAX_NAMED:] else "")
    available = ", ".join(sorted(files)[:MAX_NAMED]) or "none of the requested files"
    raise DataError(
        f"{hub_id} at {commit[:12]} has no file {names}; available: {available}. "
        f"{benchmark.card.name} is read from another layout: name a revision that has it (--data hub@REVISION)"
    )


def _may_pass(error: Exception) -> bool:
    """Return whether a retry may succeed: the server failed, or the connection was cut."""
    import httpx
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else error
    if isinstance(cause, OfflineModeIsEnabled | httpx.ConnectError):
        return False
    status = _status(cause)
    return status >= 500 if status else isinstance(cause, httpx.TransportError) or "Consistency check" in str(cause)


def _status(error: BaseException | None) -> int:
    response = getattr(error, "response", None)
    return int(response.status_code) if response is not None else 0


def _explain(error: Exception, benchmark: Benchmark, hub_id: str, revision: str | None) -> None:
    """Raise `UsageError` with one line of advice about an error of the hub, the network or the disk."""
    import httpx
    from huggingface_hub import constants
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RevisionNotFoundError,
    )

    page = f"{constants.ENDPOINT}/datasets/{hub_id}"
    if isinstance(error, RevisionNotFoundError | HFValidationError):
        raise UsageError(f"--data hub@{revision}: {page} has no such revision") from error
    if isinstance(error, HfHubHTTPError) and (refusal := _refusal(error, page, benchmark)):
        raise UsageError(f"--data hub: {refusal}") from error
    cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) and error.__cause__ else error
    if isinstance(cause, OfflineModeIsEnabled):
        raise UsageError(
            f"--data hub: HF_HUB_OFFLINE is set, and not every needed file of {hub_id} is on disk "
            f"({constants.HF_HUB_CACHE}); fetch it once without HF_HUB_OFFLINE (weights: `hybrid tools fetch`), or "
            "give the folder with --data DIR"
        ) from error
    if isinstance(error, HfHubHTTPError | LocalEntryNotFoundError | httpx.HTTPError | OSError):
        status = _status(cause)
        line = " ".join(str(cause).split())[:160]
        reason = f"the server answered {status}" if status else f"{type(cause).__name__}: {line}"
        raise UsageError(
            f"--data hub: {hub_id} is neither on disk nor reachable at {constants.ENDPOINT} ({reason}); try again "
            "(what is on disk is kept), or download it elsewhere and give the folder with --data DIR"
        ) from error


def _refusal(error: HfHubHTTPError, page: str, benchmark: Benchmark) -> str | None:
    """Return why the server refuses the data set, and what to do; None if this is not a refusal."""
    from huggingface_hub import get_token
    from huggingface_hub.errors import DisabledRepoError, GatedRepoError, RepositoryNotFoundError

    token = "set HF_TOKEN to a token of your account with read access (or run `hf auth login`)"  # noqa: S105 - no token
    if isinstance(error, GatedRepoError):
        step = f"open {page} and accept its conditions (or ask for access)"
        more = f". Also: {benchmark.card.elsewhere}" if benchmark.card.elsewhere else ""
        if get_token():
            return f"{page} is gated, and the account of your token has no access: {step} with that account{more}"
        return f"{page} is gated: {step}, and {token}{more}"
    if isinstance(error, RepositoryNotFoundError):
        return f"data set {page} does not exist, or is private: then {token}"
    if isinstance(error, DisabledRepoError):
        return f"{page} is disabled; give a folder with --data DIR"
    if _status(error) in (401, 403):
        return f"{page} refuses your token: {token}, or unset it"
    return None
