"""Every number that `score`, `run` and `compare` print on recorded data and generated questions, to compare two trees.

    python -m bench.golden --data ../shared/data -o before        # in one checkout
    python -m bench.golden --data ../shared/data -o after --against before     # in another; exit 1 if one differs

What a machine decides (seconds, folders) is left out; everything else must be the same to the last digit. Each call
starts from an empty home, so that no finding of another tree is read. Generated questions are put to the embedded
demonstration model, which is part of the tree: where the two trees hold other weights, what it decides differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDED = ("GPT4o", "GPT4V", "llava-v1.6-34b", "QwenVLMax")
SAMPLED = ("blink", "actiview", "mvp_bench", "mm_sap", "hvsbench")
LEFT_OUT = ("seconds", "run", "wall", "busy", "path", "paths")
"""Keys whose values a machine decides."""


def hybrid(*words: str, home: Path) -> Any:
    """Return the JSON that a command prints. Raises `SystemExit` with its messages if it ends in a usage error."""
    done = subprocess.run(  # noqa: S603 - our own words, no shell
        [sys.executable, "-m", "hybrid", *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HYBRID_HOME": str(home)},
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"hybrid {' '.join(words)}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return plain(json.loads(done.stdout))


def plain(value: Any) -> Any:
    """Remove the values that depend on the machine."""
    if isinstance(value, dict):
        return {
            key: plain(inner)
            for key, inner in value.items()
            if key not in LEFT_OUT and not key.endswith(("_seconds", "_s")) and key != "seconds"
        }
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def recorded(data: Path, work: Path) -> Iterator[tuple[str, Any]]:
    """The scores of the recorded models, and their runs with weight-free tools."""
    for model in RECORDED:
        outputs = data / "blink_outputs" / model
        for field in ("stored", "text"):
            yield (
                f"{model}.score.{field}",
                hybrid("score", str(outputs), "--benchmark", "blink", "--field", field, home=work),
            )
        run = str(work / model)
        words = ("run", "blink", "--data", str(data / "blink"), "--model", f"replay:{outputs}")
        yield f"{model}.run", hybrid(*words, "--backend", "classical", "--out", run, home=work)
        yield f"{model}.compare", hybrid("compare", run, home=work)


def sampled(work: Path, limit: int) -> Iterator[tuple[str, Any]]:
    """Generated questions of every benchmark with the embedded demonstration model."""
    for benchmark in SAMPLED:
        run = str(work / benchmark)
        words = ("run", benchmark, "--data", "sample", "--model", "embedded", "--limit", str(limit))
        yield f"{benchmark}.run", hybrid(*words, "--backend", "classical", "--out", run, home=work)
        yield f"{benchmark}.score", hybrid("score", run, home=work)
        yield f"{benchmark}.compare", hybrid("compare", run, home=work)


def main() -> int:
    """Write the numbers; with `--against` print which files differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the published data; without it only generated questions")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--against", type=Path, help="the folder of another tree")
    parser.add_argument("--limit", type=int, default=8, help="generated questions of each benchmark")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        sources = [sampled(work, given.limit)] + ([recorded(given.data, work)] if given.data else [])
        for source in sources:
            for name, numbers in source:
                (given.out / f"{name}.json").write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")
                print(name, flush=True)
    if given.against is None:
        return 0
    ours = {path.name: path.read_bytes() for path in given.out.glob("*.json")}
    theirs = {path.name: path.read_bytes() for path in given.against.glob("*.json")}
    differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    print("\n".join(f"differs: {name}" for name in differing) or f"{len(ours)} files are the same to the last byte")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
