"""What a service is doing for whom, as told to somebody who may have to end it.

    token = ASKED_BY.set(17)                      # in the task of a call
    with told.job("depth", "compute", (17,), 1.0): ...      # in the thread that runs the tool's code

A job is one stretch of a tool's own code: its import, the loading of its weights, a stage of a request or of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Protocol

ASKED_BY: ContextVar[int | None] = ContextVar("number of the call that is being answered", default=None)

IMPORT, LOAD = "import", "load"
"""The stages of a job that are no part of a request: what fails in one fails for every request of the tool."""


class Told(Protocol):
    """Is told of every job."""

    def job(self, tool: str, stage: str, calls: Iterable[int], rate: float) -> AbstractContextManager[None]:
        """Around a job, in its own thread.

        Args:
            tool: whose code runs.
            stage: of the tool.
            calls: the numbers of the calls that it runs for.
            rate: what a second of it is charged to each of them.
        """
        ...


class Nobody:
    """Is told and keeps nothing."""

    def job(self, tool: str, stage: str, calls: Iterable[int], rate: float) -> AbstractContextManager[None]:
        """Nothing around the job."""
        return nullcontext()
