"""`hf:DIR_OR_ID`: a vision language model of transformers in this process, off the event loop.

For example `hybrid run blink --model hf:Qwen/Qwen2.5-VL-3B-Instruct`. Weights load on the first call. One thread
generates; by default one reply at a time, so that a reply does not depend on concurrent requests. `--model-arg batch=N`
generates up to N waiting requests at once (faster on a GPU, equal only up to rounding), `--model-arg dtype=bfloat16`
sets the precision.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from hybrid.config import ModelSettings
from hybrid.core.errors import Outage, UsageError, importable, is_out_of_memory, needs_package
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, End, ImagePart, Message, SentImage, TokenUsage, ToolMessage, parts_of
from hybrid.core.off_loop import work_on_text
from hybrid.core.repetitions import seed_of_repetition
from hybrid.core.timing import waiting
from hybrid.core.types import Json, StoredImage
from hybrid.display.notes import loading
from hybrid.models.base import CallKey, ModelRefused
from hybrid.models.chat_completions.codec import calls_of
from hybrid.models.images import DecodedPictures, arrange
from hybrid.models.in_process import generation
from hybrid.models.providers import given_options
from hybrid.models.text_protocol import as_text, with_calls
from hybrid.models.thoughts import for_model
from hybrid.models.toolspec import ToolsOffered
from hybrid.plugins.weights import find_weights, weights_sha256
from hybrid.tool import Tool

T = TypeVar("T")
_IN_JSON = ("config", "processor_config", "preprocessor_config", "tokenizer")
CONFIGURATION = (*(f"{name}.json" for name in _IN_JSON), "chat_template.jinja")
# Resolved when the thread starts a request; the time before that counts as waiting, not as the question's time.
Begun = asyncio.Future[None]
# A conversation, the seed of its call, the future of its reply, and the start signal.
Waiting = tuple[generation.ChatInput, int, "asyncio.Future[generation.GeneratedReply]", Begun]


def _samples_by_default(folder: Path) -> bool | None:
    """Return whether a checkpoint draws its replies if no temperature is given; None if it does not say so.

    Loading reports a damaged file.
    """
    try:
        configuration = json.loads((folder / "generation_config.json").read_bytes())
    except (OSError, ValueError):
        return None
    # As in transformers, generation is greedy if the file does not mention it.
    return bool(configuration.get("do_sample")) if isinstance(configuration, dict) else None


def refuse_without_local(name: str) -> None:
    """Raise `UsageError` for a model in this process if a package for loading its weights is not installed."""
    for package in ("torch", "transformers"):
        if not importable(package):
            raise UsageError(needs_package(f"--model {name}", package))


class HuggingFaceChat:
    """A `ChatModel` over `AutoModelForImageTextToText` and `AutoProcessor`.

    Raises on construction:
        UsageError: an option that models in this process do not have.
    """

    provider = "hf"

    def __init__(self, name: str, settings: ModelSettings, store: ImageStore) -> None:
        self.name = name
        self._where = name.partition(":")[2]
        self._settings = settings
        self._pictures = DecodedPictures(store, settings.max_pixels)
        self._tools_offered = ToolsOffered()
        self._dtype, self._batch = _extra(settings)
        self._most = self._batch
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hf")
        self._loaded: generation.Loaded | None = None
        self._waiting: list[Waiting] = []
        self._serving: asyncio.Task[None] | None = None

    def metadata(self) -> Mapping[str, Json]:
        """Return the name, the hashes of weights and configuration, the settings and the versions.

        Raises:
            WeightsError: the weights are missing and cannot be downloaded.
        """
        folder = find_weights(self._where, download=True)
        files = [folder / name for name in CONFIGURATION if (folder / name).is_file()]
        configuration = hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files))
        settings, samples = self._settings, _samples_by_default(folder)
        return {
            "model": f"hf:{folder.name}" if Path(self._where).expanduser().is_dir() else self.name,
            "weights_sha256": weights_sha256(folder),
            "configuration_sha256": configuration.hexdigest(),
            "dtype": self._dtype,
            "batch": self._batch,
            "device": settings.device,
            "temperature": settings.temperature,
            **({"do_sample": samples} if settings.temperature is None and samples is not None else {}),
            "max_tokens": settings.max_tokens,
            "max_pixels": settings.max_pixels,
            "seed": settings.seed,
            "keep_images": settings.keep_images,
            **({"keep_pictures": settings.keep_pictures} if settings.keep_pictures else {}),
            "versions": {package: version(package) for package in ("transformers", "torch")},
            **({"tool_calling": "text"} if settings.tool_calling == "text" else {}),
            **({"reasoning": "drop"} if settings.thoughts == "drop" else {}),
        }

    def connection(self) -> Mapping[str, Json]:
        """Return nothing: there is no server."""
        return {}

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """Return the model's message.

        If the chat template does not support tools, they are called in text, unless `--tool-calling native` was given.

        Raises:
            WeightsError: the weights are missing, damaged or of another architecture.
            ModelRefused: tools are offered natively to a template that does not support them.
            Outage: the device has no memory left for this request.
        """
        loaded = await self._ready()
        as_blocks = not loaded.takes_tools or self._settings.tool_calling == "text"
        if tools and not loaded.takes_tools and self._settings.tool_calling == "native":
            raise ModelRefused(
                f"--tool-calling native: the chat template of {self.name} does not support tools; use text"
            )
        prompt = as_text(messages, tools) if as_blocks else list(messages)
        conversation, sent = await self._conversation(prompt, () if as_blocks else tools)
        base_seed = seed_of_repetition(self._settings.seed or 0, call.repetition)
        key = f"{base_seed}/{call.question}/{call.ask}/{call.call}"
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[generation.GeneratedReply] = loop.create_future()
        start_signal: Begun = loop.create_future()
        self._waiting.append((conversation, seed, future, start_signal))
        # One task serves all requests in the queue.
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        output = await _served(future, start_signal)
        calls, invalid = calls_of(output.calls, call)
        finish_reason = "length" if output.cut else "tool_calls" if calls else "stop"
        end = End.CUT if output.cut else End.ENDED
        usage = TokenUsage(output.input_tokens, output.output_tokens)
        reply = AssistantMessage(
            output.text, tuple(calls), tuple(invalid), usage, finish_reason, images_sent=tuple(sent), end=end
        )
        marked = replace(reply, text=output.marked)
        read = await work_on_text(
            output.marked, with_calls, marked, tools, messages, call.call, is_text_protocol=as_blocks
        )
        has_calls = read.calls != reply.calls or read.unreadable is not None
        return replace(read, text=loaded.plain(read.text).strip()) if has_calls else reply

    async def likelihood(
        self, messages: Sequence[Message], options: Sequence[str], prefix: str = "Answer: ("
    ) -> AssistantMessage:
        """Return a reply with the option that most likely follows `prefix`.

        The reply's `likelihood` has the probability of each option, 0..1, with sum 1.

        Args:
            messages: the conversation, ending with the question.
            options: at least two different letters or texts.
            prefix: beginning of the reply.

        Raises:
            ValueError: fewer than two options, or equal ones.
            WeightsError, Outage: like `chat`.
        """
        if len(options) < 2 or len(set(options)) < len(options):
            raise ValueError(f"options {list(options)}: give at least two, all different")
        loaded = await self._ready()
        conversation, sent = await self._conversation(list(messages), ())
        start_signal: Begun = asyncio.get_running_loop().create_future()
        work = asyncio.ensure_future(
            self._run(lambda: loaded.likelihood(conversation, prefix, options), [start_signal])
        )
        try:
            probabilities = await _served(work, start_signal)
        except Exception as error:
            raise _outage(self.name, error) from error
        best = max(options, key=lambda option: probabilities[option])
        text = f"{prefix}{best}{')' if prefix.endswith('(') else ''}"
        return AssistantMessage(text, finish_reason="stop", images_sent=tuple(sent), likelihood=probabilities)

    async def close(self) -> None:
        """Stop the thread and release the weights."""
        if self._serving is not None:
            await self._serving
        self._thread.shutdown()
        self._loaded = None

    async def _run(self, work: Callable[[], T], start_signals: Sequence[Begun] = ()) -> T:
        """Run work in the thread; the signals are set when it starts."""
        loop = asyncio.get_running_loop()

        def mark() -> None:
            for signal in start_signals:
                if not signal.done():
                    signal.set_result(None)

        def taken_up() -> T:
            loop.call_soon_threadsafe(mark)
            return work()

        return await loop.run_in_executor(self._thread, taken_up)

    async def _ready(self) -> generation.Loaded:
        """Return the model. Loading the model and waiting for the thread do not count as a question's time."""
        with waiting():
            return await self._run(self._load)

    def _load(self) -> generation.Loaded:
        if self._loaded is None:
            with loading(f"the model {self.name}"):
                import torch

                device = self._settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
                self._loaded = generation.load(find_weights(self._where, download=True), device, self._dtype)
        return self._loaded

    async def _conversation(
        self, messages: list[Message], tools: Sequence[Tool]
    ) -> tuple[generation.ChatInput, list[SentImage]]:
        history = for_model(messages, self.name, self._settings.thoughts)
        arranged = arrange(history, self._settings.pictures_kept, can_recall=bool(self._settings.keep_pictures))
        sent: list[SentImage] = []
        with waiting():
            turns = await asyncio.to_thread(lambda: [self._turn(message, sent) for message in arranged])
        return generation.ChatInput(turns, self._tools_offered.specs(tools)), sent

    def _turn(self, message: Message, sent: list[SentImage]) -> dict[str, Any]:
        """Convert a message for a chat template: arguments as objects, images as PIL images."""
        turn: dict[str, Any] = {"role": message.role, "content": message.text}
        parts = parts_of(message)
        if any(isinstance(part, ImagePart) for part in parts):
            turn["content"] = content = list[dict[str, Any]]()
            for part in parts:
                if isinstance(part, str):
                    content.append({"type": "text", "text": part})
                    continue
                image = part.ref.image
                picture = self._pictures.picture(image)
                sent_image = StoredImage(image.sha256, picture.width, picture.height, image.media_type)
                sent.append(SentImage(part.ref.name, image, sent_image))
                content.append({"type": "image", "image": picture})
        if isinstance(message, ToolMessage):
            turn["tool_call_id"] = message.call
        if isinstance(message, AssistantMessage) and message.calls:
            turn["tool_calls"] = [
                {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": call.args}}
                for call in message.calls
            ]
        return turn

    async def _serve(self) -> None:
        while self._waiting:
            live = [entry for entry in self._waiting if not entry[2].done()]
            # First come, first served, among requests that offer the same tools.
            batch = [entry for entry in live if entry[0].tools == live[0][0].tools][: self._batch]
            batch_ids = {id(entry) for entry in batch}
            self._waiting[:] = [entry for entry in live if id(entry) not in batch_ids]
            if not batch:
                return
            work = partial(self._generate, [conversation for conversation, _, _, _ in batch], batch[0][1])
            outputs = await self._run(work, [start_signal for _, _, _, start_signal in batch])
            for (_, _, future, _), output in zip(batch, outputs, strict=True):
                if future.done():
                    continue
                if isinstance(output, Exception):
                    future.set_exception(output)
                else:
                    future.set_result(output)

    def _generate(
        self, conversations: list[generation.ChatInput], seed: int
    ) -> list[generation.GeneratedReply | Exception]:
        """Return a reply or an error for each conversation; if memory runs out, halve this and all later batches."""
        size = min(self._most, len(conversations))
        if size == len(conversations):
            try:
                return [*self._load().generate(conversations, self._settings, seed)]
            except Exception as error:
                if size == 1 or not is_out_of_memory(error):
                    return [_outage(self.name, error)] * size
            # Retry outside the handler, because the error keeps its batch in the device's memory.
            self._most = size = -(-size // 2)
        parts = (conversations[start : start + size] for start in range(0, len(conversations), size))
        return [output for part in parts for output in self._generate(part, seed)]


def _extra(settings: ModelSettings) -> tuple[str, int]:
    """Return (dtype, batch) of `--model-arg`; reject options that models in this process do not have."""
    streams = ("stream",) if settings.stream == "on" else ()
    for option, value in given_options(settings, "base_url", "image_detail", "reasoning_effort", *streams).items():
        raise UsageError(f"{option} {value}: models in this process (hf:) have no such option")
    if unknown := sorted(settings.extra.keys() - {"dtype", "batch"}):
        raise UsageError(f"--model-arg {', '.join(unknown)}: models in this process (hf:) take dtype and batch")
    dtype, batch = settings.extra.get("dtype", "auto"), settings.extra.get("batch", 1)
    if dtype not in generation.DTYPES:
        raise UsageError(f"--model-arg dtype={dtype}: choose {', '.join(generation.DTYPES)}")
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise UsageError(f"--model-arg batch={batch}: must be a whole number of at least 1")
    if batch > 1 and settings.temperature != 0:
        raise UsageError(
            "--model-arg batch: replies that are sampled in one batch cannot be reproduced; leave the temperature at 0"
        )
    return str(dtype), batch


async def _served(reply: asyncio.Future[T], start_signal: Begun) -> T:
    """Return the result of the thread's work; time before its start counts as waiting. Drop a cancelled request."""
    try:
        with waiting():
            either: set[asyncio.Future[Any]] = {reply, start_signal}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return await reply
    finally:
        reply.cancel()


def _outage(name: str, error: Exception) -> Exception:
    if is_out_of_memory(error):
        outage = Outage(f"{name}: the device has no memory left for this request: {str(error)[:200]}")
        outage.__cause__ = error
        return outage
    return error
