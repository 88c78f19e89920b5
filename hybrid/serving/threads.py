"""Worker threads that do not keep a process alive: hanging work is abandoned when the program ends.

    threads = DaemonThreads(4, "tools", first=one_thread)
    await loop.run_in_executor(threads, work)

The interpreter joins the threads of `concurrent.futures` at exit without a timeout, so a tool that never returns would
keep the program from ending. These threads are given `LEAVE_S` seconds at exit, and are then abandoned.
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
# Parameters of glibc's malloc (malloc.h). All threads share one arena. Blocks below 32 MiB, the highest possible limit,
# come from the arena; up to 256 MiB of free memory at its top are kept.
MALLOC = {"M_ARENA_MAX": (-8, 1), "M_MMAP_THRESHOLD": (-3, 32 << 20), "M_TRIM_THRESHOLD": (-1, 256 << 20)}
# Seconds that the end of the program waits for all running work together.
LEAVE_S = 2.0

_RUNNING: set[Future[Any]] = set()


class DaemonThreads(Executor):
    """A pool of at most `most` threads, each started by a work item; `first` runs once in each thread."""

    def __init__(self, most: int, name: str, first: Callable[[], None] = lambda: None) -> None:
        self._most, self._name, self._first = most, name, first
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run `fn` in one of the threads. Raises `RuntimeError` after `shutdown`."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the threads were told to end and accept no more work")
            future: Future[R] = Future()
            self._waiting.put((future, lambda: fn(*args, **kwargs)))
            if len(self._threads) < self._most:
                name = f"{self._name}_{len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work, and let the threads end when they are done."""
        with self._lock:
            self._closed = True
            while cancel_futures and not self._waiting.empty():
                # An item that a thread takes at this moment still runs.
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
            # A waiting thread must not keep a result alive.
            del item, future, run


def _settle(future: Future[Any], run: Callable[[], Any]) -> None:
    # This is a separate frame, so that a waiting thread keeps no result alive.
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
    """Wait briefly for running work, because libraries should not be shut down while such work still uses them."""
    wait(tuple(_RUNNING), LEAVE_S)


def device_thread() -> None:
    """Prepare a thread that feeds a device, so that it regains the interpreter lock quickly.

    A forward pass releases the lock at each of its hundreds of short calls, and threads that decode and draw hold it
    for up to a switch interval each time (5 ms by default), while the device waits.
    """
    one_opencv_thread()
    sys.setswitchinterval(DEVICE_SWITCH_S)


def keep_freed_memory() -> None:
    """Let new arrays reuse freed memory; call once before threads start. Does nothing without glibc.

    Every picture needs a dozen arrays of megabytes, which glibc would return to the kernel and get back page by page.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in MALLOC.values():
            mallopt(parameter, value)


def one_opencv_thread() -> None:
    """Disable OpenCV's own threads, which would compete with ours and make rounding depend on the number of cores."""
    # OpenCV reads this variable when it is imported; most tools never import OpenCV.
    os.environ["OPENCV_FOR_THREADS_NUM"] = "1"
    if "cv2" in sys.modules:
        import cv2

        cv2.setNumThreads(1)
