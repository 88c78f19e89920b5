"""Which backend of a tool answers, loaded once: fallback, memory budget, and the way out of a full GPU.

    loader = Loader(BackendChoice("auto", {"depth": "checkpoints/depth-anything"}, "cuda:0"))
    ready = loader.load(tool)          # in the device thread; may evict what was used longest ago

`auto` takes the learned backend where its weights are on disk. Absent weights fall back to the weight-free backend with
a notice; weights that are there and do not load are an error, and so are weights that fail a known-answer image the
first time that they are loaded (`known_answers.py`). An absent package is no absent weights: where weights are on disk
and torch is not installed, that is an error as well, never another backend.
"""

from __future__ import annotations

import importlib.util
import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.config import AUTO, CPU, FLOAT32, BackendChoice
from hybrid.errors import NoBackend, UsageError, WeightsError, is_out_of_memory, missing_package, needs_package
from hybrid.serving.found_networks import networks_of, refuse_unfilled
from hybrid.serving.known_answers import check_once
from hybrid.serving.precision import COMPILED, compile_networks, computing, precision_of, warm_up
from hybrid.serving.stages import staged
from hybrid.tool import BackendCard, BackendName, Stages, Tool
from hybrid.weights import missing_library, weights_of

log = logging.getLogger("hybrid.serving.service")


@dataclass(frozen=True, slots=True)
class BackendIdentity:
    """Which backend of a tool answers, as its findings and their keys say it; the device has no number."""

    backend: BackendName
    version: str
    device: str
    precision: str = FLOAT32
    """Numbers that its networks compute in, and whether these are compiled: float32, tf32, bfloat16 compiled."""


@dataclass(frozen=True)
class LoadedBackend:
    """A backend that is set up: where and in which numbers it runs, the version of its findings, its weights."""

    card: BackendCard
    backend: Stages[Any, Any, Any]
    version: str
    device: str = CPU
    weights: Path | None = None
    bytes: int = 0
    precision: str = FLOAT32

    @property
    def answering(self) -> BackendIdentity:
        """Its name, version, device and precision, as findings say them."""
        return BackendIdentity(self.card.name, self.version, self.device.partition(":")[0], self.precision)


class Loader:
    """The backends that are loaded. `load` and `on_cpu` run in the one device thread; the rest may be read anywhere."""

    def __init__(self, choice: BackendChoice) -> None:
        self.choice = choice
        self.notices: list[str] = []
        """One line for each backend that could not be had or moved, as shown to the user."""
        self._loaded: dict[str, LoadedBackend] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> LoadedBackend | None:
        """The loaded backend of a tool, now the one used last; None where it is not loaded."""
        with self._lock:
            ready = self._loaded.pop(name, None)
            if ready is not None:
                self._loaded[name] = ready
            return ready

    def load(self, tool: Tool) -> LoadedBackend:
        """Set up the backend that answers for this tool, or give the one that is set up.

        Raises:
            NoBackend: there are no weights and the tool has no weight-free backend.
            WeightsError: weights that somebody asked for are absent, or weights do not load or fail a known answer.
        """
        name = tool.card.name
        if (ready := self.get(name)) is not None:
            return ready
        ready = self._choose(tool)
        with self._lock:
            self._loaded[name] = ready
        return ready

    def on_cpu(self, name: str, ready: LoadedBackend) -> LoadedBackend:
        """Move a backend and its weights to the CPU for good: the memory of the GPU did not suffice."""
        current = self.get(name)
        if current is not None and current.device == CPU:
            return current
        self._notice(_moved(name, ready.device))
        moved = _start(ready.card, ready.weights, CPU, self.choice)
        with self._lock:
            self._loaded[name] = moved
        _free()
        return moved

    @property
    def loaded(self) -> tuple[str, ...]:
        """The tools whose backend is loaded, least recently used first."""
        with self._lock:
            return tuple(self._loaded)

    def _choose(self, tool: Tool) -> LoadedBackend:
        name, wanted, choice = tool.card.name, self.choice.backend, self.choice
        learned = tool.backend("learned")
        if wanted == "classical" or learned is None:
            return _weight_free(tool, f"{name} has no weight-free backend")
        # A download is only started for weights that somebody asked for by name or by --backend learned.
        asked = name in choice.weights or wanted == "learned"
        try:
            weights = weights_of(tool, learned, choice.weights, download=asked)
        except WeightsError as error:
            if asked:
                raise
            ready = _weight_free(tool, f"{name}: {error}; it has no weight-free backend")
            self._notice(f"{name}: {error}; the weight-free backend answers instead")
            return ready
        self._make_room(_size(weights))
        device = _device(choice.device)
        try:
            return self._believed(tool, learned, weights, device)
        except Exception as error:
            if device == CPU or not is_out_of_memory(error):
                raise
        self._notice(_moved(name, device))
        _free()
        return self._believed(tool, learned, weights, CPU)

    def _believed(self, tool: Tool, learned: BackendCard, weights: Path | None, device: str) -> LoadedBackend:
        """Weights that are set up on a device and have passed their known-answer images."""
        try:
            ready = _start(learned, weights, device, self.choice)
        except ModuleNotFoundError as error:
            if (package := missing_package(error)) is None:
                raise
            other = ", or take --backend classical" if tool.backend("classical") else ""
            raise WeightsError(
                f"{needs_package(f'the learned backend of {tool.card.name}', package)}{other}"
            ) from error
        if ready.precision.endswith(COMPILED):
            warm_up(tool, ready.backend, learned.batch)
        if not self.choice.unchecked:
            check_once(tool, ready.backend, ready.version, device, weights, ready.precision)
        return ready

    def _make_room(self, wanted: int) -> None:
        budget = self.choice.memory_bytes
        if budget is None:
            return
        with self._lock:
            for name in list(self._loaded):
                if wanted + sum(ready.bytes for ready in self._loaded.values()) <= budget:
                    break
                if self._loaded[name].bytes:
                    del self._loaded[name]
        _free()

    def _notice(self, line: str) -> None:
        self.notices.append(line)
        log.warning(line)


def _weight_free(tool: Tool, otherwise: str) -> LoadedBackend:
    """The weight-free backend. Raises `NoBackend`, beginning with `otherwise` where the tool has none."""
    classical = tool.backend("classical")
    if classical is None:
        raise NoBackend(f"{otherwise}; {_remedy(tool)}")
    if why := missing_library([tool]):
        raise NoBackend(why)
    return _start(classical, None, CPU, BackendChoice())


def _start(card: BackendCard, weights: Path | None, device: str, choice: BackendChoice) -> LoadedBackend:
    made = card.make()
    made.setup(device, None if weights is None else str(weights))
    if weights is not None:
        refuse_unfilled(made, weights)
    version = str(getattr(made, "version", card.version))
    backend = staged(made)
    # Without a network of torch there is nothing to say: ONNX computes in float32.
    networks = networks_of(made)
    if not networks:
        return LoadedBackend(card, backend, version, device, weights, _size(weights))
    precision = precision_of(choice, card, device, weights)
    backend = computing(backend, precision, device)
    if choice.compiled:
        compile_networks(networks)
        precision += COMPILED
    return LoadedBackend(card, backend, version, device, weights, _size(weights), precision)


def refuse_absent(device: str) -> None:
    """Raise `UsageError` for a device that torch does not know or that this machine does not have."""
    if device in (AUTO, CPU):
        return
    try:
        import torch
    except ImportError as error:
        raise UsageError(needs_package(f"--device {device}", "torch")) from error
    try:
        wanted = torch.device(device)
    except RuntimeError as error:
        raise UsageError(f"--device {device}: torch knows no such device") from error
    if wanted.type == "cuda":
        # Asked without a tensor, which would take memory of the device for as long as this process lives.
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count == 0:
            raise UsageError(f"--device {device}: torch sees no CUDA device on this machine")
        if (wanted.index or 0) >= count:
            raise UsageError(f"--device {device}: torch sees none beyond cuda:{count - 1} on this machine")
        return
    try:
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"--device {device}: this machine has no such device") from error


def _device(asked: str) -> str:
    if asked != AUTO:
        return asked
    # A backend that needs no torch, such as one of ONNX, runs on the CPU.
    if importlib.util.find_spec("torch") is None:
        return CPU
    import torch

    return "cuda" if torch.cuda.is_available() else CPU


def _moved(name: str, device: str) -> str:
    return f"{name}: the memory of {device} does not suffice; it runs on the CPU from here on"


def _size(weights: Path | None) -> int:
    return 0 if weights is None else sum(path.stat().st_size for path in weights.rglob("*.safetensors"))


def _free() -> None:
    """Give freed GPU memory back, where torch holds any."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _remedy(tool: Tool) -> str:
    """Where the weights of a tool without any are to be named: at the tools that it needs, if it loads none itself."""
    learned = tool.backend("learned")
    name = learned.needs[0].tool if learned and learned.needs and not learned.weights else tool.card.name
    install = f" or install {learned.package}" if learned and learned.package else ""
    return f"give weights with --weights {name}=DIR_OR_ID{install}"
