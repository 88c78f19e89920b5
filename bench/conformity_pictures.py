"""Behaviours of servers with tool images, thinking and the order of images, and their outcomes.

python -m bench.conformity_pictures                    every row of bench/conformity_pictures.toml, as a page
python -m bench.conformity_pictures --out bench/results/conformity_pictures.md
"""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import hybrid
from bench._frame import options
from bench._picture_server import THOUGHT, PictureServer, Treatment, serving
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.core.errors import HybridError, UsageError
from hybrid.core.types import Fault, Step
from hybrid.display.notes import quietly
from hybrid.log.attempts import read_attempts

DATA: Final = Path(__file__).with_suffix(".toml")
HEAD: Final = """# Servers and images of tools

Each behaviour is one small server in `bench/conformity_pictures.toml`; the controller asks it one question through the
real client. *Refused* means exit code 2 before the first question.

```sh
python -m bench.conformity_pictures --out bench/results/conformity_pictures.md
```
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One row: the expected and the actual outcome, and whether the actual outcome is right."""

    name: str
    reference: str
    expected: str
    came: str
    is_right: bool


def measure(row: Mapping[str, Any], folder: Path) -> Result:
    """Ask one question of a row's server, in a run with its own folder, and return the outcome."""
    came, is_right = "", False
    with serving(_treatment(row["treatment"])) as server, quietly():
        settings = ModelSettings(base_url=server.url, retries=0, **row.get("options", {}))
        request: dict[str, Any] = {
            "data": "sample",
            "tasks": (row.get("task", "Spatial_Relation"),),
            "limit": 1,
            "tools": ("crop",),
        }
        model, service = row.get("model", "openai:k"), ServiceOptions("classical")
        try:
            hybrid.run(
                RunConfig(
                    "blink",
                    ("controller",),
                    model=model,
                    model_settings=settings,
                    service=service,
                    out=folder,
                    **request,
                )
            )
            came, is_right = _outcome(row, server, folder)
        except UsageError as error:
            is_early = not (folder / "controller" / "attempts.jsonl").exists()
            came, is_right = (
                f"refused: {error}",
                row["expects"] == "refused" and row["words"] in str(error) and is_early,
            )
        except HybridError as error:
            came = f"{type(error).__name__}: {error}"
    expected = row["expects"] + (f", {row['thoughts']} of 1 thoughts" if "thoughts" in row else "")
    return Result(row["name"], row["reference"], expected, " ".join(came.split())[:200], is_right)


def _treatment(other_options: Mapping[str, Any]) -> Treatment:
    keys: dict[str, Any] = {key: tuple(value) if key == "switch" else value for key, value in other_options.items()}
    return Treatment(**keys)


def _outcome(row: Mapping[str, Any], server: PictureServer, folder: Path) -> tuple[str, bool]:
    """Return the outcome of a completed run, and whether it is right."""
    recorded = read_attempts(folder / "controller" / "attempts.jsonl", None)
    steps: list[Step] = [
        step for value in recorded.by_id.values() for exchange in value.exchanges for step in exchange.reply.steps
    ]
    refused = [step.text for step in steps if step.fault is Fault.PICTURE_REFUSED]
    if not recorded.by_id:
        return "no answer", False
    if refused:
        return f"fault: {refused[0]}", row["expects"] == "fault"
    tool_picture = json.loads((folder / "manifest.json").read_text())["tool_picture"]
    thoughts = server.prompts[-1].count(THOUGHT)
    came = f"answered, picture {tool_picture['place']}, {thoughts} thoughts in the prompt"
    is_place = row["expects"] == "fits" or row["expects"] == tool_picture["place"]
    return came, is_place and thoughts == row.get("thoughts", 0)


def page(results: Sequence[Result]) -> str:
    """Return the page of results, in Markdown."""
    right = sum(result.is_right for result in results)
    lines = [f"{len(results)} behaviours: {right} as expected, {len(results) - right} wrong.", ""]
    lines += ["| behaviour | reported in | expected | seen | right |", "|---|---|---|---|---|"]
    for item in results:
        came = item.came.replace("|", "\\|").replace("<", "\\<").replace("[", "\\[").replace("_", "\\_")
        lines.append(
            f"| {item.name} | {item.reference} | {item.expected} | {came} | {'yes' if item.is_right else 'no'} |"
        )
    return "\n".join([HEAD, *lines, ""])


def main(words: Sequence[str] | None = None) -> int:
    """Print the page; return 1 if a behaviour is wrong."""
    flags = options(__doc__, {"--out": Path}, words)
    rows = tomllib.loads(DATA.read_text())["row"]
    with tempfile.TemporaryDirectory() as home:
        results = [measure(row, Path(home) / str(at)) for at, row in enumerate(rows)]
    print(page(results))
    if flags.out is not None:
        flags.out.write_text(page(results))
    return int(not all(result.is_right for result in results))


if __name__ == "__main__":
    raise SystemExit(main())
