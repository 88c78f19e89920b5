"""The text beside a progress bar: `12.3k tokens, $0.42, 3 retries, 1 tool fault, 2 failed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.running.progress import Progress


def beside(so_far: Progress) -> str:
    """Tokens read and written, dollars at a known price, retries, tool faults, failed questions; nothing that is 0."""
    used = so_far.used
    parts = []
    if tokens := used.input_tokens + used.output_tokens:
        parts.append(f"{_short(tokens)} tokens")
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


def _short(count: int) -> str:
    """Three or four characters and a unit: 999, 12.3k, 1.25M."""
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.2f}M"
