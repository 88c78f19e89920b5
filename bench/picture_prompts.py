"""Count how much of its own thinking a model sees after a tool has returned an image, by the server's treatment.

python -m bench.picture_prompts
python -m bench.picture_prompts --url http://127.0.0.1:8000/v1 --served tiny --template FILE --switch NAME

With `--url`, the conversations of the runs are sent to that server. The command prints the prompt that the template
makes from the last request, if the server returns prompts (`return_prompt_text` of vLLM), and the server's token counts
with and without the thinking. `--template` is a file that is sent as `chat_template`.
"""

from __future__ import annotations

import json
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import hybrid
from bench._frame import options
from bench._picture_server import THOUGHT, PictureServer, Treatment, serving
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.config.words import ToolPictures
from hybrid.display.notes import quietly

SWITCH: Final = ("preserve_thinking", True)
TAKES: Final = Treatment(thinks=True, inside="taken", thinks_in="reasoning")
# Title, server, and position of the image.
CASES: Final[Sequence[tuple[str, Treatment, ToolPictures]]] = (
    ("in a user message after the tool message", TAKES, "beside"),
    ("inside the tool message", TAKES, "auto"),
    (
        "in a user message, with the template's switch",
        Treatment(thinks=True, thinks_in="reasoning", switch=SWITCH),
        "auto",
    ),
)
ASK_S: Final = 300


def asked_by_run(treatment: Treatment, place: ToolPictures, folder: Path) -> PictureServer:
    """Run one question, and return the server with its requests and prompts."""
    with serving(treatment) as server, quietly():
        settings = ModelSettings(base_url=server.url, retries=0, tool_pictures=place)
        request: dict[str, Any] = {"data": "sample", "tasks": ("Spatial_Relation",), "limit": 1, "tools": ("crop",)}
        service = ServiceOptions("classical")
        model = "openai:a-model-that-thinks"
        hybrid.run(
            RunConfig(
                "blink", ("controller",), model=model, model_settings=settings, service=service, out=folder, **request
            )
        )
    return server


def ask(url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chat completions server's reply to a body. Raises `SystemExit` with the message of a refusal."""
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=ASK_S) as reply:  # noqa: S310
            return dict(json.loads(reply.read()))
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{url}: {error.code}: {error.read().decode(errors='replace')[:500]}") from None


def resend(request: Mapping[str, Any], other_options: Any) -> tuple[str, int, int]:
    """Return a real server's prompt for a request, and its token counts with and without thinking.

    The prompt is "" if the server returns none.
    """
    body = {"model": other_options.served, "messages": request["messages"], "tools": request["tools"], "max_tokens": 1}
    if (kwargs := request.get("chat_template_kwargs")) is not None:
        body["chat_template_kwargs"] = {other_options.switch: True} if other_options.switch else kwargs
    if other_options.template is not None:
        body |= {"chat_template": other_options.template.read_text(), "return_prompt_text": True}
    reply = ask(other_options.url, body)
    bare = [{name: value for name, value in item.items() if name != "reasoning"} for item in request["messages"]]
    without = ask(other_options.url, body | {"messages": bare})
    tokens = (reply["usage"]["prompt_tokens"], without["usage"]["prompt_tokens"])
    return reply.get("prompt_text") or "", *tokens


def main(words: Sequence[str] | None = None) -> int:
    """Print the prompts; return 1 if thinking is lost where it must be kept."""
    flags = options(__doc__, {"--url": "", "--served": "", "--switch": "", "--template": Path}, words)
    results = []
    with tempfile.TemporaryDirectory() as home:
        for at, (name, treatment, place) in enumerate(CASES):
            server = asked_by_run(treatment, place, Path(home) / str(at))
            if flags.url:
                prompt, tokens, without = resend(server.requests[-1], flags)
                results.append(int(tokens > without))
                print(f"## {name}: {results[-1]} of 1 thoughts, {tokens} tokens, {without} without thinking\n")
                print(prompt, end="\n\n" if prompt else "")
                continue
            prompt = server.prompts[-1]
            results.append(prompt.count(THOUGHT))
            # Omits the instructions and the question, which are always the same.
            print(f"## {name}: {results[-1]} of 1 thoughts, {len(prompt.split())} words\n")
            print(prompt[prompt.index("<|assistant|>") :], end="\n\n")
    return int(results != [0, 1, 1])


if __name__ == "__main__":
    raise SystemExit(main())
