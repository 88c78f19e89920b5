"""The command lines of servers that this program starts.

command_of("vllm:Qwen/Qwen2.5-VL-7B-Instruct", {"max-model-len": "8192"}).words(8000)
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from hybrid.core.errors import UsageError
from hybrid.core.types import Json

# Options that the program sets itself; each of the three servers has its own names for them.
RESERVED: Final = frozenset(
    {"host", "port", "model", "model-path", "served-model-name", "alias", "hf-repo", "hf", "m", "a", "uds"}
)
# Rejected arguments: every user of the machine can read the secrets on a command line.
SECRETS: Final = frozenset({"api-key", "api-key-file", "hf-token", "admin-api-key"})
FLAGS: Final[Mapping[str, bool]] = {"on": True, "true": True, "off": False, "false": False}


@dataclass(frozen=True)
class ServerKind:
    """A server's program, and what its command line needs."""

    word: str
    title: str
    # The program, and the environment variable that names another program (a path, or a name on the PATH).
    program: str
    variable: str
    install: str
    # Maps the model's name to the program's arguments, without host and port.
    model_words: Callable[[str], list[str]]
    # Argument for the name under which the model is requested.
    name_option: str
    # The words before the model's name if the program is a Python interpreter; empty if the server is not written in
    # Python.
    module_words: tuple[str, ...] = ()

    def first_words(self, program: str, model: str) -> list[str]:
        """Return the command line after the program, up to and including the model."""
        if self.module_words and Path(program).name.startswith("python"):
            return [*self.module_words, os.path.expanduser(model)]
        return self.model_words(model)


@dataclass(frozen=True)
class ServerCommand:
    """A command line without its port; equal commands share one server."""

    kind: str
    name: str
    program: str
    arguments: tuple[str, ...]
    # Part of a run's identity: the arguments by name, including those from the parser table.
    facts: Mapping[str, Json]

    def words(self, port: int) -> list[str]:
        """Return the command line for a port of 127.0.0.1."""
        return [self.program, *self.arguments, "--host", "127.0.0.1", "--port", str(port)]

    @property
    def key(self) -> tuple[str, ...]:
        """The values that identify a server: equal values mean the same server."""
        return (self.program, *self.arguments)


def _llamacpp_words(model: str) -> list[str]:
    """Return the arguments for a GGUF file and the projector in its folder, or for a repository of the hub."""
    path = Path(model).expanduser()
    if not path.is_file():
        if model.lower().endswith(".gguf") or model.startswith(("/", "./", "../", "~")):
            raise UsageError(f"--model llamacpp:{model}: file not found")
        return ["-hf", model, "--jinja"]
    projectors = [other for other in sorted(path.parent.glob("mmproj*.gguf")) if other != path]
    projector = ["--mmproj", str(projectors[0])] if len(projectors) == 1 else []
    return ["-m", str(path), *projector, "--jinja"]


KINDS: Final[Mapping[str, ServerKind]] = {
    kind.word: kind
    for kind in (
        ServerKind(
            "vllm",
            "vLLM",
            "vllm",
            "HYBRID_VLLM",
            "`uv tool install vllm`",
            lambda model: ["serve", os.path.expanduser(model)],
            "--served-model-name",
            ("-m", "vllm.entrypoints.openai.api_server", "--model"),
        ),
        ServerKind(
            "sglang",
            "SGLang",
            "sglang",
            "HYBRID_SGLANG",
            "`uv tool install sglang`",
            lambda model: ["serve", "--model-path", os.path.expanduser(model)],
            "--served-model-name",
            ("-m", "sglang.launch_server", "--model-path"),
        ),
        ServerKind(
            "llamacpp",
            "llama.cpp's server",
            "llama-server",
            "HYBRID_LLAMACPP",
            "see https://github.com/ggml-org/llama.cpp",
            _llamacpp_words,
            "--alias",
        ),
    )
}


@dataclass(frozen=True)
class Parsers:
    """The parsers for a model family, by the server's own names; a name is empty if there is no such parser."""

    tools: str = ""
    reasoning: str = ""


def command_of(name: str, server_args: Mapping[str, str]) -> ServerCommand:
    """Return the command line for a model `kind:NAME`.

    Args:
        name: such as `vllm:Qwen/Qwen2.5-VL-7B-Instruct`.
        server_args: further arguments, without dashes; `on` and `off` switch flags. They replace the table's parsers.

    Raises:
        UsageError: no name, a program that is not installed, or an argument that is reserved or a secret.
    """
    word, _, model = name.partition(":")
    kind = KINDS[word]
    if not model:
        form = "FILE.gguf or OWNER/NAME" if word == "llamacpp" else "a folder or OWNER/NAME"
        raise UsageError(f"--model {name}: write {word}: followed by {form}")
    user_args = {key.lstrip("-").replace("_", "-"): value for key, value in server_args.items()}
    for key in user_args:
        _check_argument(kind, key)
    values = {**_parser_arguments(word, model, user_args), **user_args}
    words = [part for key, value in values.items() for part in _argument_words(key, value)]
    program = _find_program(kind, name)
    arguments = (*kind.first_words(program, model), kind.name_option, model, *words)
    facts: dict[str, Json] = {"kind": word, **{key: values[key] for key in sorted(values)}}
    return ServerCommand(word, name, program, arguments, facts)


def _check_argument(kind: ServerKind, key: str) -> None:
    if key in RESERVED:
        raise UsageError(f"--server-arg {key}: hybrid sets this argument itself; leave it out")
    if key in SECRETS:
        raise UsageError(f"--server-arg {key}: secrets belong in the environment; options are saved in the run")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9.-]*", key):
        raise UsageError(f"--server-arg {key}: this is not an argument of {kind.title}: write its name without dashes")


def _argument_words(key: str, value: str) -> list[str]:
    """Return the command-line words of one argument; the value `on` gives the flag, `off` the negative flag."""
    flag = FLAGS.get(value.casefold())
    if flag is None:
        return [f"--{key}", value]
    return [f"--{key}"] if flag else [f"--no-{key}"]


def _parser_arguments(word: str, model: str, user_args: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments that make calls and thinking readable, without those that `user_args` sets."""
    parsers = parsers_of(word, model)
    values: dict[str, str] = {}
    if parsers.tools and "tool-call-parser" not in user_args:
        values["tool-call-parser"] = parsers.tools
    if parsers.reasoning and "reasoning-parser" not in user_args:
        values["reasoning-parser"] = parsers.reasoning
    # Without this flag, vLLM returns calls as plain text.
    if word == "vllm" and (values.get("tool-call-parser") or user_args.get("tool-call-parser")):
        values["enable-auto-tool-choice"] = "on"
    return values


def parsers_of(word: str, model: str) -> Parsers:
    """Return the parsers for a model, by its name and the `model_type` of a local folder's `config.json`."""
    texts = (_model_type(Path(model).expanduser()), Path(model).name, model)
    for text in filter(None, texts):
        for family in _families():
            if re.search(family["models"], text, re.IGNORECASE):
                return Parsers(**family.get(word, {}))
    return Parsers()


def _model_type(folder: Path) -> str:
    """Return the `model_type` in a local checkpoint's configuration; empty if the configuration has none."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return ""
    kind = config.get("model_type") if isinstance(config, dict) else None
    return kind if isinstance(kind, str) else ""


@cache
def _families() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("families.toml").read_text("utf-8"))["family"]
    return rows


def _find_program(kind: ServerKind, name: str) -> str:
    """Return the path of the program. Raises `UsageError` if it is not installed."""
    override = os.environ.get(kind.variable)
    executable = shutil.which(os.path.expanduser(override) if override else kind.program)
    if executable is not None:
        return os.path.abspath(executable)
    if override:
        raise UsageError(f"--model {name}: {kind.variable}={override} is not a program that can be run")
    missing = f"{kind.title} is not installed (no {kind.program!r} on the PATH)"
    other = "for a server that is already running, give --model openai:NAME --base-url URL"
    raise UsageError(f"--model {name}: {missing}: install it ({kind.install}), or set {kind.variable} to it; {other}")
