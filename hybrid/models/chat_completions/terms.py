"""The API variant that a server accepts, learnt from its error messages, once per run.

    terms = learn_terms(name, PLAIN, error, ["seed"], (), settings)    # for later requests; None: nothing to change

Only changes that keep the meaning are automatic: the older name of an option, or omitting an optional option. A
change that would affect results raises an error that names the option which allows it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hybrid.config import ModelSettings
from hybrid.display.notes import tell
from hybrid.models.base import ModelRefused
from hybrid.models.failures import StatusError, summary

NEWER, OLDER = "max_completion_tokens", "max_tokens"
# Field names under which servers return a model's thoughts. If a reply has several of them, their content is the same.
THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks", "thoughts")
# Fields that a server puts into its replies but may reject when they are sent back.
SENT_BACK: Final = (*THOUGHTS, "extra_content", "thought_signature", "provider_specific_fields")
_SAID: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PASSED_ON: Final = frozenset(_SAID["passed_on"])  # Options of `--model-arg` that are passed to a server unchanged.
CAN_BE_LEFT_OUT: Final[Mapping[str, str]] = _SAID["can_be_left_out"]
REMEDIES: Final[Mapping[str, str]] = _SAID["remedies"] | dict.fromkeys(SENT_BACK, _SAID["thoughts"])
_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
BRIDGE: Final = "I will look at the pictures."
_STREAMS_ONLY = re.compile(_SAID["streams_only"].replace("\n", ""), re.IGNORECASE)
_UNKNOWN = _SAID["unknown"].replace("\n", "")
_WANTS_THOUGHTS = re.compile(r"reasoning_content|thought_?signature|\bthinking\b.{0,60}(?:pass|miss|must|expected)")
_WANTS_RESPONSES = re.compile(
    r"(?:tools? .{0,40}reasoning|reasoning.{0,40} tools?).{0,200}/v1/responses", re.IGNORECASE
)
_WANTS_TOOLS = re.compile(_SAID["wants_tools"].replace("\n", ""), re.IGNORECASE)
_WANTS_REPLY = re.compile(_SAID["wants_reply"].replace("\n", ""), re.IGNORECASE)
_AND = r"(?:\W{1,4}|\W{1,3}and\W{1,3})"


@dataclass(frozen=True, slots=True)
class ApiVariant:
    """How requests are written for one server."""

    stream: bool = False
    max_tokens: str = NEWER  # Name of the option for the maximum length of a reply.
    without: frozenset[str] = frozenset()  # Options to leave out.
    declares_tools: bool = False  # Whether tools that were called stay declared when no tool may be called any more.
    bridges: bool = False  # Whether a reply is inserted between a tool's result and the user's next message.

    def changes(self, previous: ApiVariant) -> list[str]:
        """Describe the differences from a previous variant in sentences."""
        sentences = ["replies are requested as streams"] if self.stream > previous.stream else []
        sentences += [f"requests contain {OLDER} instead of {NEWER}"] if self.max_tokens != previous.max_tokens else []
        if self.declares_tools > previous.declares_tools:
            sentences.append("every request declares the tools that were called, with tool_choice none in the last one")
        if self.bridges > previous.bridges:
            sentences.append(f"hybrid inserts a reply {BRIDGE!r} between a tool's result and its pictures")
        left_out = sorted(self.without - previous.without)
        return sentences + [
            f"requests omit {field}, {CAN_BE_LEFT_OUT.get(field, 'a field that the server itself had sent')}"
            for field in left_out
        ]

    def announce(self, name: str, previous: ApiVariant, reason: str) -> ApiVariant:
        """Print the differences from the previous variant, each line ending in `reason`; return this variant."""
        for change in self.changes(previous):
            tell(f"note: {name}: from now on {change}{reason}")
        return self


PLAIN: Final = ApiVariant()  # OpenAI's variant, used until a server requests another.


def learn_terms(
    name: str,
    terms: ApiVariant,
    error: StatusError,
    options: Collection[str],
    extra_fields: Collection[str],
    settings: ModelSettings,
) -> ApiVariant | None:
    """Return the variant for the next request after an error; None if the error is not about the request's form.

    Args:
        name: name of the model.
        terms: variant of the rejected request.
        error: the error.
        options: names of the fields sent in addition to the messages.
        extra_fields: fields that the server itself had put into its replies.
        settings: settings of the run.

    Raises:
        ModelRefused: the server requires or rejects something that only the user may change; the message names the
            option.
    """
    text, refuses = summary(error, 4000), f"--model {name}: the server"
    if error.status_code not in _STATUSES:
        return None
    if not terms.stream and _STREAMS_ONLY.search(text):
        if settings.stream != "off":
            return replace(terms, stream=True)
        raise ModelRefused(f"{refuses} only streams, which --stream off does not allow: {summary(error)}")
    if _WANTS_RESPONSES.search(text):
        remedy = "use --model-arg api=responses for the Responses API, or --reasoning-effort none for no reasoning"
        raise ModelRefused(
            f"{refuses} accepts tools and reasoning together only in the Responses API; {remedy}: {summary(error)}"
        )
    if _WANTS_TOOLS.search(text) and not terms.declares_tools:
        return replace(terms, declares_tools=True)
    if _WANTS_REPLY.search(text) and not terms.bridges:
        return replace(terms, bridges=True)
    if settings.thoughts == "drop" and _WANTS_THOUGHTS.search(text):
        raise ModelRefused(f"{refuses} requires the reasoning that --reasoning drop leaves out: {summary(error)}")
    names = _find_unknown_options(text, {*options, *extra_fields})
    can_be_left_out = {*CAN_BE_LEFT_OUT, NEWER, *extra_fields} - {*SENT_BACK}
    if refused := [name for name in names if name not in can_be_left_out]:
        remedy = REMEDIES.get(refused[0], f"omit --model-arg {refused[0]}")
        raise ModelRefused(
            f"{refuses} does not accept {refused[0]} in the form in which it was sent; {remedy}: {summary(error)}"
        )
    older = OLDER if NEWER in names else terms.max_tokens
    after = replace(terms, max_tokens=older, without=terms.without | {*names} - {NEWER})
    return after if after != terms else None


def _find_unknown_options(text: str, sent: Collection[str]) -> list[str]:
    """Return the sent options that an error calls unknown: the first one that it names, and those listed with it."""
    if not sent:
        return []
    name = rf"(?<![\w/-])({'|'.join(map(re.escape, sorted(sent, key=len, reverse=True)))})(?![\w/-]|\.\d)"
    about = re.compile(rf"{_UNKNOWN}.{{0,80}}?{name}|{name}.{{0,80}}?{_UNKNOWN}", re.IGNORECASE | re.DOTALL)
    if (match := about.search(text)) is None:
        return []
    place = 1 if match[1] else 2
    names, end = [match[place]], match.end(place)
    following = re.compile(rf"{_AND}{name}", re.IGNORECASE)
    while more := following.match(text, end):
        names.append(more[1])
        end = more.end(1)
    forbidden_names = re.findall(rf"extra_forbidden\W+loc\W+(?:body\W+)?{name}", text)
    by_lower = {option.lower(): option for option in sent}
    return list(dict.fromkeys(by_lower[option.lower()] for option in (*names, *forbidden_names)))
