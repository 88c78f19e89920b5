"""The questions of `bench.loop` asked by Inspect AI: one task, one tool that crops, its own log on disk.

    python -m bench._inspect_client --url URL --questions FOLDER --in-flight 64 --out FOLDER

It needs an interpreter with `inspect_ai`, `openai` and Pillow, and nothing else from this project. Inspect writes its
default log, from which it can resume after a crash; the display is off.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, get_model
from inspect_ai.solver import Generate, TaskState, generate, solver, use_tools
from inspect_ai.tool import tool
from inspect_ai.util import store

from bench._bare_clients import KEY, data_url, encoded, enlarged
from bench._frame import options


def crop() -> Any:
    """Return the tool that `bench._bare_clients` gives LangGraph, in Inspect's form."""

    async def execute(images: list[str], box: dict[str, int]) -> list[Any]:
        """Enlarge a region of an image.

        Args:
            images: The names of the images.
            box: The region in pixels: x0, y0, x1, y1.
        """
        file = Path(store().get("picture")).read_bytes()
        part = await asyncio.to_thread(lambda: encoded(enlarged(file, box)))
        return [ContentText(text=f"{images[0]} enlarged"), ContentImage(image=data_url(part, "jpeg"))]

    return execute


def remember_picture() -> Any:
    """Tell the tool which image belongs to the sample."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        store().set("picture", state.metadata["picture"])
        return state

    return solve


def samples(folder: Path) -> list[Sample]:
    """Return the questions of a folder."""
    results = []
    for line in (folder / "questions.jsonl").read_text().splitlines():
        row = json.loads(line)
        picture = str(folder / f"{row['number']}.jpg")
        parts = [ContentImage(image=picture), ContentText(text=row["prompt"])]
        results.append(Sample([ChatMessageUser(content=parts)], id=row["number"], metadata={"picture": picture}))
    return results


def main() -> None:
    """Ask every question. Raises `SystemExit` if Inspect reports a failure."""
    flags = options(__doc__, {"--url": str, "--questions": ..., "--in-flight": 64, "--out": ...})
    model = get_model("openai/mock", base_url=flags.url, api_key=KEY, responses_api=False)
    remember, crops = solver(remember_picture), tool(crop)
    task = Task(dataset=samples(flags.questions), solver=[remember(), use_tools(crops()), generate()])
    in_flight = {"max_connections": flags.in_flight, "max_samples": flags.in_flight}
    (log,) = eval(task, model=model, log_dir=str(flags.out), display="none", **in_flight)
    if log.status != "success":
        raise SystemExit(f"Inspect ended with {log.status}: {log.error}")


if __name__ == "__main__":
    main()
