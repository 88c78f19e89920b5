"""A solver's estimate of its own calls for `--dry-run`: model calls, tools offered and findings shown in an ask."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallPath:
    """One way in which an ask can go. Each call sends the prompt again with all that has come back so far."""

    # Model calls.
    calls: int = 0
    # Those of the calls that offer the tools.
    offered: int = 0
    # Findings that the model has been shown when it answers; they come in evenly from the second call on.
    findings: int = 0
    # Text of every call besides the prompt.
    says: str = ""


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """The ways in which an ask can go: the shortest path, the usual one, the longest.

    `share`, 0..1, is the share of asks that is assumed to take the usual path; the others take the shortest. `assumes`
    says so in words where it is an assumption and not certain.
    """

    low: CallPath
    usual: CallPath
    high: CallPath
    share: float = 1.0
    assumes: str = ""


def certain(call_path: CallPath) -> CallEstimate:
    """The estimate of an ask that can go in one way only."""
    return CallEstimate(call_path, call_path, call_path)
