"""Runs whose model is asked in batches (`--batch`): requirements, estimates, and batches left at the provider."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from hybrid.config import LOCAL, ModelSettings
from hybrid.config.values import seconds_of
from hybrid.core.errors import UsageError
from hybrid.log.batches import BATCHES, WAITS, BatchJournal, read_batches, waiting_calls
from hybrid.log.folder import RunFolder
from hybrid.models import ChatModel
from hybrid.models.batching.batches import Batches
from hybrid.models.batching.client import batch_api, batched
from hybrid.models.batching.follow import delete_input
from hybrid.models.caller import Caller
from hybrid.models.failures import summary
from hybrid.running.cost_estimate import SolverEstimate
from hybrid.running.resolve import ResolvedRun
from hybrid.solving.budgets import BATCH_SHARE


def refuse_unbatched(run: ResolvedRun) -> None:
    """Raise `UsageError` if the model does not support batches, or if an earlier command left batches running."""
    config, settings = run.config, run.config.model_settings
    if settings.batch:
        if config.engine != LOCAL:
            raise UsageError(f"--batch only works for requests of this process: omit --engine {config.engine}")
        if config.model_settings.stream == "on":
            raise UsageError("--stream on: replies in batches are not streamed; leave out --stream or --batch")
        if config.objects.model is not None:
            raise UsageError(f"--batch: model={config.model} is a Python object, which cannot use batches")
        if config.model is not None:
            batch_api(config.model, config.model_settings)
            if run.resources.model is not None and not isinstance(run.resources.model, Caller):
                raise UsageError(
                    f"--batch: {config.model} runs in this process, so it has no batch API; leave out --batch"
                )
    elif settings.batch_tail or settings.batch_wait != type(settings)().batch_wait:
        raise UsageError("--batch-wait and --batch-tail need --batch")
    elif open_batches := batches_still_running(run.folder.path):
        raise UsageError(
            f"{open_batches}: continue with --batch, because without it you would pay for these requests twice"
        )


def in_batches(run: ResolvedRun) -> ChatModel:
    """Return the model of the run, wrapped to use batches if configured."""
    model, settings = run.resources.model, run.config.model_settings
    assert model is not None  # noqa: S101 - the caller has checked that the model supports batches
    if not settings.batch:
        return model
    api = batch_api(model.name, settings)
    address = model.connection().get("base_url")
    url = address if isinstance(address, str) else None
    count_lost = run.resources.run_meter.count_lost
    batches = Batches(
        api,
        model.name,
        url,
        run.folder.path,
        wait_s=seconds_of(settings.batch_wait, "--batch-wait"),
        tail=settings.batch_tail,
        count_lost=count_lost,
    )
    return batched(model, batches, settings)


def batch_notes(run: ResolvedRun, solvers: Mapping[str, SolverEstimate]) -> list[str]:
    """Return notes on the batches of each solver: rounds, bytes of images, and the cost with and without batches."""
    notes = []
    for name, estimate in solvers.items():
        if not estimate.high.calls:
            continue
        store = run.service.store
        images = (image for question in run.open_questions(name) for image in question.images)
        paths = (store.path(image.sha256) for image in images)
        sizes = [path.stat().st_size for path in paths if path.exists()]
        # Images are sent in base64, and again with each call of a question.
        sent = sum(sizes) * 4 / 3 * estimate.expected.calls / max(1, estimate.questions)
        note = f"{name} in batches: {estimate.rounds[0]} rounds expected, {estimate.rounds[1]} at most; about "
        note += f"{sent / 1e6:,.1f} MB of images"
        if (cost := estimate.cost_usd) is not None:
            note += f"; {cost['expected'] * BATCH_SHARE:.2f} USD expected instead of {cost['expected']:.2f}"
        notes.append(note)
    return notes


def expected_usd(solvers: Mapping[str, SolverEstimate]) -> float:
    """Return the highest expected cost per batched call of any solver, in USD; 0 if unknown."""
    asking = [estimate for estimate in solvers.values() if estimate.expected.calls]
    means = [(estimate.cost_usd or {}).get("expected", 0.0) / estimate.expected.calls for estimate in asking]
    return max(means, default=0.0) * BATCH_SHARE


async def cancel_batches(path: Path) -> list[str]:
    """Cancel the batches that a run has waiting at its provider; return a line for each.

    Raises:
        UsageError: `path` is not a run, another command is continuing the run, the provider's key is missing, or the
            provider fails to cancel a batch.
    """
    lines = []
    with RunFolder.existing(path).locked(), closing(BatchJournal(path / BATCHES)) as journal:
        for batch in [logged for logged in journal.known.values() if logged.state in WAITS]:
            api = batch_api(batch.model, ModelSettings(base_url=batch.base_url))
            try:
                if (identity := batch.id or await api.find(batch, journal.ids)) is not None:
                    await api.cancel(identity)
                await delete_input(api, journal, batch.name)
            # Any failure of the provider fails the command.
            except Exception as error:
                raise UsageError(f"{batch.model}, batch {batch.id or batch.name}: {summary(error)}") from error
            finally:
                await api.http.close()
            journal.change(batch.name, state="cancelled" if identity else "refused", id=identity)
            state = "ended" if identity else "was never taken"
            lines.append(f"{identity or batch.name}: {state}, {len(batch.calls):,} requests")
    return lines or [f"{path} has no waiting batch"]


def left_in(place: Path) -> str:
    """Describe the batches of the runs in a folder that still run at the provider; empty if there are none."""
    return "; ".join(filter(None, (batches_still_running(file.parent) for file in sorted(place.glob(f"*/{BATCHES}")))))


def batches_still_running(folder: Path) -> str:
    """Describe the batches of a run that still run at the provider; empty if there are none."""
    batches, requests = waiting_calls(read_batches(folder / BATCHES).values())
    if not batches:
        return ""
    return (
        f"{batches} batch{'es' * (batches > 1)} of {folder} ({requests:,} requests) still run{'s' * (batches == 1)} "
        f"at the provider; `hybrid runs cancel {folder}` ends {'it' if batches == 1 else 'them'}"
    )
