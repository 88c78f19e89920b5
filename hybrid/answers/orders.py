"""A reply to an ordering question (HVSBench Q3) -> the letters in order, such as "BCA", or None.

A library module without a command of its own. Follows Table 10 of the HVSBench paper.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hybrid.answers._letter_reply import AFTER_A
from hybrid.answers.base import CUE, Parsed, first_match, plain, undecided
from hybrid.answers.letters import LETTERS


@dataclass(frozen=True)
class OrderReply:
    """A normalised reply, the labels in use and those offered."""

    text: str
    letters: str
    offered: str

    @property
    def block(self) -> str:
        """A pattern for labels written in a row: `BCA`, `D B C A`, `B > C, A`, `[A] and [C]`."""
        k = re.escape(self.letters)
        article = rf"A\s(?!(?:{AFTER_A}|then)\b)[a-z]" if "A" in self.letters else r"(?!)"
        item = rf"(?!{article})[(\[\"']{{0,2}}[{k}]+[)\]\"']{{0,2}}"
        gap = r"(?:\s?[,;>→/<=-]{1,3}\s?(?:(?:and|then)\b\s?)?|\s(?:(?:and|then)\b\s)?)"
        return rf"(?<![A-Za-z0-9_']){item}(?:{gap}{item})*(?![A-Za-z0-9_'])"


def _order(reply: OrderReply, block: str) -> str | None:
    """The labels of a block in order; None where one was not offered or stands twice."""
    order = "".join(c for c in block if c in reply.letters)
    return order if set(order) <= set(reply.offered) and len(set(order)) == len(order) else None


def only_letters(reply: OrderReply) -> str | None:
    """The whole reply is letters in a row: `D B C A`, `BCA`, `[A]`."""
    match = re.fullmatch(rf"[\s\"'(\[]{{0,3}}({reply.block})[\s.\"')\]]{{0,4}}", reply.text)
    return _order(reply, match[1]) if match else None


def numbered_lines(reply: OrderReply) -> str | None:
    """A numbered list whose items start with letters: `1. B`, `2. (C) the dog`."""
    lines = [line.strip() for line in reply.text.split("\n") if line.strip()]
    k = re.escape(reply.letters)
    items = [re.match(rf"(\d{{1,2}})[.):]\s?[(\[]?([{k}])(?![A-Za-z0-9_'])", line) for line in lines]
    found = [m for m in items if m is not None]
    if len(found) < 2 or [int(m[1]) for m in found] != list(range(1, len(found) + 1)):
        return None
    return _order(reply, "".join(m[2] for m in found))


def announced(reply: OrderReply) -> str | None:
    """The letters that are last announced as the answer: `so the answer is BCA`."""
    found = re.findall(
        rf"(?i:{CUE}|\border\b(?: is| should be|:))[\s:=\"'\-]{{0,6}}(?:only\s)?({reply.block})", reply.text
    )
    return _order(reply, found[-1]) if found else None


def last_letters(reply: OrderReply) -> str | None:
    """The last letters in a row: `The order between the A,B,C should be BCA`, `its A and B`."""
    found = re.findall(reply.block, reply.text)
    return _order(reply, found[-1]) if found else None


RULES: Final[tuple[Callable[[OrderReply], str | None], ...]] = (only_letters, numbered_lines, announced, last_letters)


def parse_order(text: str, choices: Sequence[str], *, letters: str = LETTERS) -> Parsed[str]:
    """The order that `text` gives.

    Args:
        text: the reply, any text.
        choices: one entry per object that was offered; only their number counts.
        letters: the labels; `letters[i]` is the label of `choices[i]`.

    Returns:
        `Parsed` with one or more of `letters[:len(choices)]`, each at most once, or None: an incomplete order is
        still the reply's order ("A" -> "A"), an order with a label that was not offered is none.

    Raises:
        ValueError: more choices than letters.
    """
    if len(choices) > len(letters):
        raise ValueError(f"{len(choices)} choices, but only {len(letters)} letters ({letters!r}) to call them by")
    reply = OrderReply(plain(text), letters, letters[: len(choices)])
    if not reply.text or not reply.offered:
        return undecided()
    return first_match(RULES, reply)
