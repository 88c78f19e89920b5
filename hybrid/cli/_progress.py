"""Progress of a run: a bar per solver, next to it `12.3k tokens, $0.42, 3 retries, 2 failed`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hybrid.core.errors import HybridError
from hybrid.core.secrets import redact
from hybrid.display.notebook import line_in_place
from hybrid.display.notes import is_quiet, loading_shown_by

if TYPE_CHECKING:
    from hybrid.running.engine import Progress
    from hybrid.running.resolve import ResolvedRun
    from hybrid.running.run import RunEnd

# Shown until the first answer of a solver has arrived.
FIRST_ANSWER = "waiting for the first answer"


def ask_with_bars(run: ResolvedRun) -> RunEnd:
    """Ask the open questions, with a progress bar per solver on stderr.

    Raises:
        Interrupted: a signal ended the run.
        HybridError: a component of the run ended the program.
    """
    from hybrid.engines import opener_of
    from hybrid.running.process import until_signal
    from hybrid.running.run import run_until_complete

    with Bars(quiet=is_quiet()) as bars:
        try:
            return asyncio.run(
                until_signal(run_until_complete(run, bars, bars.tell, opener_of(run.config), bars.watch))
            )
        except SystemExit as error:
            raise HybridError(f"code that the run uses ended the program (SystemExit: {error})") from error


class Bars:
    """A progress bar per solver, on stderr or in a notebook's cell, with usage and failures next to it."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bars: dict[str, Any] = {}
        self._beside = self._loading = self._waits = self._first = ""
        self._shown = loading_shown_by(self._loads)

    def __enter__(self) -> Bars:
        self._shown.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.__exit__(None, None, None)
        for bar in self._bars.values():
            bar.close()

    def tell(self, line: str) -> None:
        """Print a line on stderr."""
        if self._quiet:
            return
        click.echo(redact(line), err=True)

    def watch(self, solver: str, so_far: Progress) -> None:
        """Show the solver's usage and failures next to its bar."""
        self._beside = format_usage(so_far)
        # The end of a question refreshes the bar, but no question ends while the run waits for batches.
        waits, self._waits = self._waits, so_far.waits
        self._set_beside(refresh=waits != so_far.waits)

    def _loads(self, what: Sequence[str]) -> None:
        """Show the weights being loaded."""
        self._loading = f"loading {', '.join(what)}" if what else ""
        self._set_beside(refresh=True)

    def _set_beside(self, *, refresh: bool) -> None:
        if self._bars:
            postfix = ", ".join(filter(None, (self._loading or self._first, self._beside)))
            next(reversed(self._bars.values())).set_postfix_str(postfix, refresh=refresh)

    def __call__(self, solver: str, finished: int, total: int) -> None:
        """Advance the solver's bar to `finished` questions."""
        if self._quiet:
            return
        from tqdm import tqdm

        if solver not in self._bars:
            for bar in self._bars.values():
                bar.close()
            self._bars[solver] = tqdm(
                total=total, initial=finished, desc=solver, unit="q", mininterval=0.5, file=line_in_place()
            )
            # A slow machine may need minutes for the first answer, during which the bar does not move.
            self._beside, self._first = "", FIRST_ANSWER if finished < total else ""
            self._set_beside(refresh=bool(self._loading or self._first))
        elif self._first and finished > self._bars[solver].initial:
            self._first = ""
            self._set_beside(refresh=False)
        self._bars[solver].update(finished - self._bars[solver].n)


def format_usage(so_far: Progress) -> str:
    """Format tokens, cost at a known price, retries, tool faults and failed questions; zeros are omitted."""
    used = so_far.used
    parts = []
    if tokens := used.input_tokens + used.output_tokens:
        # Three or four characters and a unit: 999, 12.3k, 1.25M.
        large = f"{tokens / 1_000:.1f}k" if tokens < 999_950 else f"{tokens / 1_000_000:.2f}M"
        parts.append(f"{tokens if tokens < 1_000 else large} tokens")
    if used.cost_usd is not None:
        parts.append(f"${used.cost_usd:.2f}")
    if so_far.retries:
        parts.append(f"{so_far.retries} {'retry' if so_far.retries == 1 else 'retries'}")
    if used.tool_faults:
        parts.append(f"{used.tool_faults} tool fault{'s' * (used.tool_faults > 1)}")
    if so_far.failed:
        parts.append(f"{so_far.failed} failed")
    if so_far.waits:
        parts.append(so_far.waits)
    return ", ".join(parts)
