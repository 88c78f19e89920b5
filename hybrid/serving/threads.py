"""Worker threads that do not keep a process alive: what hangs in one is left behind when the program ends.

    threads = DaemonThreads(4, "tools", first=one_thread)
    await loop.run_in_executor(threads, work)

The threads of `concurrent.futures` are joined at the end of the interpreter without a limit, so that a tool that never
returns is a program that never ends. Here the end waits `LEAVE_S` seconds for what still runs, and leaves it.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

DEVICE_SWITCH_S = 2e-5
# Parameters of glibc's malloc (malloc.h) with their values: one arena for all threads; blocks below 32 MiB, the most
# that it takes, come from that arena; of its end up to 256 MiB stay.
MALLOC = {"M_ARENA_MAX": (-8, 1), "M_MMAP_THRESHOLD": (-3, 32 << 20), "M_TRIM_THRESHOLD": (-1, 256 << 20)}
# How long the end of the program waits for work that still runs, all of its threads together.
LEAVE_S = 2.0

_RUNNING: set[Future[Any]] = set()


class DaemonThreads(Executor):
    """At most so many threads, one more with each work until there are all; `first` runs once in each."""

    def __init__(self, most: int, name: str, first: Callable[[], None] = lambda: None) -> None:
        self._most, self._name, self._first = most, name, first
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run it in one of the threads. Raises `RuntimeError` after `shutdown`."""
        with self._lock:
            if self._closed:
                raise RuntimeError("no work can be given to threads that were told to end")
            future: Future[R] = Future()
            self._waiting.put((future, lambda: fn(*args, **kwargs)))
            if len(self._threads) < self._most:
                name = f"{self._name}_{len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work and let the threads end when they have done theirs, or have none any more."""
        with self._lock:
            self._closed = True
            while cancel_futures and not self._waiting.empty():
                # One that a thread takes in this moment runs.
                with suppress(queue.Empty):
                    if (item := self._waiting.get_nowait()) is not None:
                        item[0].cancel()
            for _ in self._threads:
                self._waiting.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _work(self) -> None:
        self._first()
        while (item := self._waiting.get()) is not None:
            future, run = item
            if future.set_running_or_notify_cancel():
                _settle(future, run)
            # A thread that waits must not keep a result.
            del item, future, run


def _settle(future: Future[Any], run: Callable[[], Any]) -> None:
    # In a frame of its own, which ends: a thread that waits keeps no result.
    _RUNNING.add(future)
    try:
        result = run()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
    finally:
        _RUNNING.discard(future)


@atexit.register
def _leave() -> None:
    """Wait a little for what still runs: libraries are not to be taken apart under work that is nearly done."""
    wait(tuple(_RUNNING), LEAVE_S)


def device_thread() -> None:
    """Begin a thread that gives work to a device: it gets the interpreter back soon whenever it let go of it.

    A pass lets go of the interpreter at each of its hundreds of short calls, and threads that decode and draw keep it
    for up to a switch interval each time (5 ms by default), while the device waits.
    """
    one_opencv_thread()
    sys.setswitchinterval(DEVICE_SWITCH_S)


def keep_freed_memory() -> None:
    """Let arrays take the memory that others freed: said once, before there are threads. Nothing without glibc.

    Every picture is a dozen arrays of megabytes, which glibc returns to the kernel and gets back page by page.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in MALLOC.values():
            mallopt(parameter, value)


def one_opencv_thread() -> None:
    """OpenCV's own threads would compete with ours and change rounding with the number of cores."""
    # Read where it is imported: most tools never do.
    os.environ["OPENCV_FOR_THREADS_NUM"] = "1"
    if "cv2" in sys.modules:
        import cv2

        cv2.setNumThreads(1)
