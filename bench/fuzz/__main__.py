"""Coverage-guided fuzzing of the code that reads foreign input.

    uv run --with atheris python -m bench.fuzz answers|loaders [--seconds 300]

`answers.py` and `loaders.py` each hold a target, a function of bytes, and `corpus/` their seeds. An exception that a
target does not expect, or an input that takes more than `SLOW_S` of CPU time, is a finding; the run continues, and each
place in the code is reported once. The fuzzer runs in a separate process, because it exits without a message.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from bench._frame import options

CORPUS = Path(__file__).parent / "corpus"
INSTRUMENTED = ("hybrid", "tarfile")
# Maximum bytes of an input.
MAX_LENGTH = 4096
# Maximum CPU seconds for `MAX_LENGTH` bytes; linear code takes a hundredth of that.
SLOW_S = 1.0
FOUND = "FINDING "
DONE = re.compile(r"Done (\d+) runs in (\d+) second")
COVERED = re.compile(r"cov: (\d+) ft: (\d+)")

Target = Callable[[bytes], None]


def main() -> None:
    """Fuzz for some time, then print executions and findings; the exit code is 1 if there are findings."""
    # With seed 0, the mutations differ every time.
    flags = {"name": ("answers", "loaders"), "--seconds": 300, "--seed": 0, "--findings": Path("fuzz-findings")}
    arguments = options(__doc__, flags)
    name = arguments.name
    with tempfile.TemporaryDirectory() as folder:
        corpus = shutil.copytree(CORPUS / name, Path(folder) / "corpus")
        flags = [
            f"-max_total_time={arguments.seconds}",
            f"-max_len={MAX_LENGTH}",
            f"-seed={arguments.seed}",
            "-timeout=60",
        ]
        flags += ["-rss_limit_mb=4096", f"-artifact_prefix={folder}/"]
        command = [sys.executable, "-m", "bench.fuzz", "--target", name, str(arguments.findings), *flags, str(corpus)]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
        grown = len(list(corpus.iterdir()))
    lines = [line for line in result.stdout.splitlines() if line.startswith(FOUND)]
    ran = DONE.search(result.stderr)
    if ran is None:
        raise SystemExit(f"the fuzzer did not come to its end:\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}")
    reached = COVERED.findall(result.stderr)
    print(f"{name}: {int(ran[1]):,} executions in {ran[2]} s, {len(lines)} findings, {grown} inputs in the corpus")
    print(f"edges and features reached: {' and '.join(reached[-1]) if reached else 'unknown'}")
    print("\n".join(lines))
    sys.exit(1 if lines else 0)


def fuzz(name: str, folder: Path, flags: list[str]) -> None:
    """Run the fuzzer: `folder` receives the findings, `flags` are libFuzzer's. Does not return."""
    import atheris  # type: ignore[import-untyped]

    # This process must not have imported the code before, because the fuzzer instruments it during the import.
    with atheris.instrument_imports(include=list(INSTRUMENTED)):
        target: Target = importlib.import_module(f"bench.fuzz.{name}").target
    seen = set[str]()

    def watched(data: bytes) -> None:
        start = time.thread_time()
        try:
            target(data)
        except Exception as error:
            _keep(_place(error), data, folder, seen)
            return
        if time.thread_time() - start > SLOW_S:
            slow = f"{time.thread_time() - start:.1f} s for {len(data)} bytes beginning with {data[:2]!r}"
            _keep(slow, data, folder, seen)

    atheris.Setup([sys.argv[0], *flags], watched)
    atheris.Fuzz()


def _place(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/hybrid/" in frame.filename]
    frame = frames[-1] if frames else last
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}: {str(error)[:160]!r}"


def _keep(what: str, data: bytes, folder: Path, seen: set[str]) -> None:
    place = re.sub(r"[\d.]+ s for \d+ bytes", "slow", what.split(": ", maxsplit=1)[0])
    if place in seen:
        return
    seen.add(place)
    folder.mkdir(parents=True, exist_ok=True)
    name = folder / hashlib.sha256(data).hexdigest()[:16]
    name.write_bytes(data)
    print(f"{FOUND}{what} ({name})", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--target"]:
        fuzz(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
    else:
        main()
