"""Test behaviours of servers and models that break tool-call loops, with one small server for each.

python -m bench.conformity                    every behaviour of bench/conformity.toml, as a page
python -m bench.conformity --only Gemini      those whose name or reference contains the text
python -m bench.conformity --out bench/results/conformity.md
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from unittest.mock import patch

import hybrid
from bench._frame import options
from bench._scripted_server import DATA, Behaviour, behaviours, serving
from hybrid.config import Limits, ModelSettings, RunConfig, ServiceOptions
from hybrid.core.errors import HybridError
from hybrid.core.types import Attempt, Step, Usage
from hybrid.display.notes import quietly
from hybrid.log.attempts import read_attempts

Kind = Literal["call", "repaired", "fault", "nothing", "facts", "failed"]
_DATA: Final = tomllib.loads(DATA.read_text())
HEAD: Final[str] = _DATA["head"]
OUTCOMES: Final[Mapping[Kind, str]] = _DATA["outcomes"]
# For each API, the model and the options with which it is asked; keys are read from the environment.
WIRES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "openai": ("openai:k", {}),
    "responses": ("openai:k", {"extra": {"api": "responses"}}),
    "anthropic": ("anthropic:k", {}),
    "google": ("google_genai:k", {}),
    "ollama": ("ollama:k", {}),
}
KEYS: Final = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), "not-a-real-key-1")
WORTH: Final[Mapping[Kind, int]] = {"call": 3, "repaired": 2, "fault": 1, "nothing": 1, "facts": 1, "failed": 0}


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a behaviour, and its description."""

    behaviour: Behaviour
    kind: Kind
    details: str

    @property
    def silent(self) -> bool:
        """Whether the behaviour ended in a failure without a message."""
        return self.kind == "failed" and not self.details


def measured(behaviour: Behaviour, folder: Path) -> Result:
    """Ask one question of a behaviour's server, in a run with its own folder, and return the outcome."""
    text, steps, requests = "", list[Step](), list[bytes]()
    name, wire_options = WIRES[behaviour.wire]
    keys = {} if behaviour.wire == "openai" else KEYS
    with serving(behaviour, requests) as url, quietly(), patch.dict(os.environ, keys):
        settings = ModelSettings(**{"base_url": url, "retries": 1, "seed": 0, **wire_options, **behaviour.options})
        model = {"model": name, "model_settings": settings, "allow": ("blind", "toolless")}
        limits = Limits(**behaviour.limits)
        request = {
            "limits": limits,
            "data": "sample",
            "tasks": (behaviour.task,),
            "limit": 1,
            "tools": (behaviour.tool,),
        }
        service = ServiceOptions("classical")
        try:
            hybrid.run(RunConfig("blink", ("controller",), **model, **request, service=service, out=folder))
        except HybridError as error:
            # Show the command's own message, because `hybrid.run` words it for Python.
            text = f"{type(error).__name__}: {error.__cause__ if isinstance(error.__cause__, HybridError) else error}"
    recorded = read_attempts(folder / "controller" / "attempts.jsonl", None)
    if behaviour.expect:
        return _compared(behaviour, _facts(folder, list(recorded.by_id.values()), requests, text))
    for attempt in recorded.by_id.values():
        steps += [step for exchange in attempt.exchanges for step in exchange.reply.steps]
    for trace in recorded.unfinished.values():
        # LangGraph adds notes below the error, so look for the line of the error.
        lines = [line for line in trace.splitlines() if line.startswith("hybrid.")]
        text = text or lines[-1].partition(".errors.")[2]
    return _result(behaviour, steps, text)


def _facts(folder: Path, attempts: Sequence[Attempt], requests: Sequence[bytes], stopped: str) -> dict[str, object]:
    """Return the facts that a run recorded about its one question, and its number of requests."""
    replies = [exchange.reply for attempt in attempts for exchange in attempt.exchanges]
    last = next((step.data for reply in replies for step in reversed(reply.steps) if step.kind == "model"), {})
    used = replies[0].usage if replies else Usage()
    manifest = json.loads((folder / "manifest.json").read_text()) if (folder / "manifest.json").exists() else {}
    facts: dict[str, object] = {
        "outcome": replies[0].outcome.value if replies else "none",
        "text": replies[0].text if replies else "",
        "requests": len(requests),
        "tokens": [used.input_tokens, used.output_tokens, used.reasoning_tokens, used.cached_tokens],
        "uncounted": used.uncounted_calls,
        "faults": [step.fault.value for reply in replies for step in reply.steps if step.fault is not None],
        "models": sorted(manifest.get("answered_by", {}).get("controller", {})),
        "stopped": stopped,
        "sent": (requests or [b""])[-1].decode(),
    }
    return facts | {name: last[name] for name in ("end", "finish_reason", "broken_off", "retries") if name in last}


def _compared(behaviour: Behaviour, facts: Mapping[str, object]) -> Result:
    """Check whether the facts are as expected; a text in `stopped` or `sent` must be contained in the actual text."""
    wrong = {}
    for name, expected in behaviour.expect.items():
        seen = facts.get(name)
        same = expected in str(seen) if name in ("stopped", "sent") else seen == expected
        if not same:
            wrong[name] = seen
    wrong |= {name: facts[name] for name in behaviour.absent if name in facts}
    by_name = {name: facts.get(name) for name in behaviour.expect if name != "sent"}
    text = ", ".join(f"{name} {_short(value)}" for name, value in (wrong or by_name).items())
    return Result(behaviour, "failed" if wrong else "facts", text)


def _short(value: object) -> str:
    text = str(value)
    return f"{text[:117]}..." if len(text) > 120 else text


def _result(behaviour: Behaviour, steps: Sequence[Step], message: str) -> Result:
    """Derive the outcome from the steps of the attempt, or from the error."""
    ran = [step for step in steps if step.kind == "tool" and step.fault is None]
    faults = [f"{step.fault.value}: {step.text}" for step in steps if step.fault is not None]
    marks = [step.text for step in steps if "read_from" in step.data]
    kind: Kind = "failed"
    if message or faults:
        kind, message = "fault", message or "; ".join(faults)
    elif ran and behaviour.wants == "nothing":
        message = "text that is not a call was run as one"
    elif len(ran) == behaviour.calls_made:
        kind, message = ("repaired", "; ".join(marks)) if marks else ("call", "")
    elif steps and behaviour.wants == "nothing":
        kind = "nothing"
    return Result(behaviour, kind if WORTH[kind] >= WORTH[behaviour.wants] else "failed", message)


def page(results: Sequence[Result]) -> str:
    """Return the page of results, in Markdown."""
    counts = Counter(result.kind for result in results)
    text = ", ".join(f"{name} {counts[kind]}" for kind, name in OUTCOMES.items())
    silent = sum(item.silent for item in results)
    lines = [f"{len(results)} behaviours: {text}, {silent} of them without a message.", ""]
    lines += ["| behaviour | reported in | expected | result | details |", "|---|---|---|---|---|"]
    for entry in results:
        link = entry.behaviour.reference
        # Behaviours without a link to a report were observed by this project.
        link = f"[{link}](https://github.com/{link.replace('#', '/issues/')})" if "/" in link else link
        expect = entry.behaviour.expect or {"at least": OUTCOMES[entry.behaviour.wants]}
        expected = _cell(", ".join(f"{name} {value}" for name, value in expect.items()))
        cells = (_cell(entry.behaviour.name), link, expected, OUTCOMES[entry.kind], _cell(entry.details[:160]))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([HEAD, *lines, ""])


def _cell(text: str) -> str:
    text = re.sub(r"(?<=127\.0\.0\.1:)\d+", "PORT", text)
    # Escape what would be read as a tag, a column or a link.
    return re.sub(r"([|<\[\\`*_])", r"\\\1", " ".join(text.split()))


def main(words: Sequence[str] | None = None) -> int:
    """Print the page; return 1 if a behaviour failed."""
    flags = options(__doc__, {"--only": "", "--out": Path}, words)
    values = [
        behaviour
        for behaviour in behaviours()
        if flags.only.lower() in f"{behaviour.name} {behaviour.reference}".lower()
    ]
    with tempfile.TemporaryDirectory() as home:
        results = [measured(item, Path(home) / str(place)) for place, item in enumerate(values)]
    print(page(results))
    if flags.out is not None:
        flags.out.write_text(page(results))
    return int(any(result.kind == "failed" for result in results))


if __name__ == "__main__":
    raise SystemExit(main())
