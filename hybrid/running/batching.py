"""A run whose model is asked in batches (`--batch`): what it needs, and what it left at the provider."""

from __future__ import annotations

from pathlib import Path

from hybrid.config import LOCAL, RunConfig
from hybrid.config.durations import seconds_of
from hybrid.errors import UsageError
from hybrid.log.batches import BATCHES, read_batches, waiting_calls
from hybrid.models import ChatModel
from hybrid.models.batching.batches import Batches, RoundRules
from hybrid.models.batching.client import batch_api, batched
from hybrid.models.caller import Caller
from hybrid.running.resolve import ResolvedRun


def refuse_unbatched(run: ResolvedRun) -> None:
    """Raise `UsageError` for a model that cannot be asked in batches, or batches that another command left behind."""
    config, settings = run.config, run.config.model_settings
    if settings.batch:
        _refuse_other(config, run.resources.model)
    elif settings.batch_tail or settings.batch_wait != type(settings)().batch_wait:
        raise UsageError("--batch-wait and --batch-tail say how batches are made: give --batch with them")
    elif left := left_behind(run.folder.path):
        raise UsageError(f"{left}: go on with --batch, or they are paid twice")


def _refuse_other(config: RunConfig, model: ChatModel | None) -> None:
    if config.engine != LOCAL:
        raise UsageError(f"--batch collects what this process asks: leave --engine {config.engine} away")
    if config.model_settings.stream == "on":
        raise UsageError("--stream on: the replies of --batch come whole")
    if config.objects.model is not None:
        raise UsageError(f"--batch: model={config.model} is asked by its own object, which knows no batches")
    if config.model is not None:
        batch_api(config.model, config.model_settings)
        if model is not None and not isinstance(model, Caller):
            raise UsageError(f"--batch: {config.model} is asked in this process")


def in_batches(run: ResolvedRun) -> ChatModel:
    """The model of the run, asked through batches where the run says so."""
    model, settings = run.resources.model, run.config.model_settings
    assert model is not None  # noqa: S101 - who asks has looked
    if not settings.batch:
        return model
    api = batch_api(model.name, settings)
    rules = RoundRules(settings.batch_wait, seconds_of(settings.batch_wait, "--batch-wait"), settings.batch_tail)
    address = model.connection().get("base_url")
    batches = Batches(api, model.name, address if isinstance(address, str) else None, run.folder.path, rules)
    return batched(model, batches, settings)


def left_behind(folder: Path) -> str:
    """Which batches of a run go on at the provider, in words; empty where none does."""
    batches, requests = waiting_calls(read_batches(folder / BATCHES).values())
    if not batches:
        return ""
    return (
        f"{batches} batch{'es' * (batches > 1)} of {folder} ({requests:,} requests) go{'es' * (batches == 1)} on at "
        f"the provider; `hybrid runs cancel {folder}` ends {'it' if batches == 1 else 'them'}"
    )
