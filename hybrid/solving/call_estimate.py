"""A solver's estimate of its calls for `--dry-run`: model calls, offered tools and tool outputs for a prompt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallPath:
    """One possible course of answering a prompt. Each call sends the prompt with everything returned so far."""

    # Number of model calls.
    calls: int = 0
    # Number of those calls that offer the tools.
    offered: int = 0
    # Number of tool outputs that the model is shown before its answer; they arrive evenly from the second call on.
    findings: int = 0
    # Text that every call contains in addition to the prompt.
    says: str = ""


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """The possible courses of answering a prompt: the shortest, the usual and the longest.

    `share`, 0..1, is the assumed share of prompts that take the usual path; all others take the shortest path.
    `assumes` states this assumption in words, and is empty if the estimate is certain.
    """

    low: CallPath
    usual: CallPath
    high: CallPath
    share: float = 1.0
    assumes: str = ""


def certain(call_path: CallPath) -> CallEstimate:
    """Return the estimate for a prompt that can take only this course."""
    return CallEstimate(call_path, call_path, call_path)
