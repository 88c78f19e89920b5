"""Runs of one tool and one solver with a server that handles pictures in its own way."""

import json
from pathlib import Path
from typing import Any

import hybrid
from bench._picture_server import PictureServer
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.core.types import Step
from hybrid.log.attempts import read_attempts


def run(server: PictureServer, folder: Path, *, model: str = "openai:k", **options: Any) -> dict[str, Any]:
    """Ask one question with the controller and `crop`; return the manifest."""
    settings = ModelSettings(base_url=server.url, retries=0, **options.pop("settings", {}))
    values: dict[str, Any] = {
        "tasks": ("Spatial_Relation",),
        "limit": 1,
        "tools": ("crop",),
        "data": "sample",
        **options,
    }
    service = ServiceOptions("classical")
    hybrid.run(
        RunConfig("blink", ("controller",), model=model, model_settings=settings, service=service, out=folder, **values)
    )
    return manifest(folder)


def manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return content


def steps(folder: Path) -> list[Step]:
    recorded = read_attempts(folder / "controller" / "attempts.jsonl", None)
    assert not recorded.unfinished
    return [step for value in recorded.by_id.values() for exchange in value.exchanges for step in exchange.reply.steps]
