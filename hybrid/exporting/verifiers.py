"""An environment of verifiers: a package with which that library trains or evaluates a model.

The questions and tools are those of a run.

    hybrid export RUN/controller --to verifiers -o my_environment
    uv venv vf && uv pip install --python vf/bin/python ./my_environment
    vf/bin/vf-eval my_environment --env.taskset.hybrid "$(which hybrid)" -m MODEL --client.base-url URL --no-push

The package holds the options of the run, except the model, and no questions. `hybrid rollouts` reads the data, asks and
scores in hybrid's own environment, because verifiers needs openai below 3 and other packages that hybrid cannot use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hybrid.core.errors import UsageError
from hybrid.core.files import write_atomic
from hybrid.core.machine_paths import hide_paths_in
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.plugins.discovery import is_word, no_word
from hybrid.plugins.templates import filled

TEMPLATE: Final = "verifiers"
PACKAGE: Final = "my_environment"
OPTIONS_FILE: Final = "run.json"
# Options that verifiers sets itself (model, address, number of parallel requests), or that concern a whole run.
LEFT_OUT: Final = frozenset(
    {
        *("model", "base-url", "solver", "concurrency", "engine", "address", "cache-replies", "strict"),
        *("batch", "batch-wait", "batch-tail", "run-max-calls", "run-max-tokens", "run-max-seconds", "run-max-cost"),
    }
)


class Verifiers(Exporter):
    """A package named like its folder."""

    form = "verifiers"
    about = "an environment of verifiers: a package with the run's options, in which hybrid's tools and scorer run"
    takes = ()

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`.

        Raises:
            UsageError: several solvers, a name that Python cannot import, or a manifest without options.
        """
        del options
        solver, name = run.only(self.form), path.name
        if not is_word(name):
            raise UsageError(f"-o {path}: {no_word('package')}, and begins with a letter")
        run_options, notes = portable_options(run.folder.manifest)
        texts = filled(TEMPLATE, {PACKAGE: name})
        texts[f"{name}/{OPTIONS_FILE}"] = json.dumps({**run_options, "solver": [solver]}, indent=1) + "\n"
        for file, text in texts.items():
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path / file, text.encode())
        if run.generated:
            title = run.benchmark.card.short_title
            notes.append(f"generated questions: rewards in this environment are not results of {title}")
        return Written(tuple(path / file for file in texts), tuple(notes))


def portable_options(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the options that determine prompts, tools and scores for any model, and notes on missing paths.

    The results of the run's checks of the model's server are kept, because an environment makes no checks.

    Raises:
        UsageError: the manifest records no options.
    """
    if not isinstance(recorded := manifest.get("options"), dict):
        raise UsageError("this run has no recorded options: it was imported, or made from Python without options")
    options = {key: value for key, value in recorded.items() if key not in LEFT_OUT}
    if model_args := _model_args(manifest):
        options["model-arg"] = model_args
    portable: dict[str, Any] = hide_paths_in(options)
    hidden = [key for key in options if options[key] != portable[key]]
    notes = [
        f"{OPTIONS_FILE}: {key} contained a path of this machine, which was removed: write it there again"
        for key in hidden
    ]
    return portable, notes


def _model_args(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run's `--model-arg` with the results of the run's checks: frame, and place of tool pictures."""
    values = dict(manifest["options"].get("model-arg", {}))
    if isinstance(frame := manifest.get("probed_frame"), str):
        values["frame"] = frame
    if place := manifest.get("tool_picture", {}).get("place"):
        values.setdefault("tool_pictures", place)
    return values


EXPORTER = Verifiers()
