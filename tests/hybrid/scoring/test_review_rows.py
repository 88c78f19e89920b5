"""Sentences of `conclusion_review` for hand-written rows.

Each condition is tested on both sides, next to rows of other tasks and solvers.

Each row of the table gives rows of one section and the sentences that follow from them by hand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.core.errors import DataError
from hybrid.scoring import conclusion_review
from hybrid.scoring.conclusion_review import pooled_sentences, review_sentences
from hybrid.scoring.headline_pair import NO_CLAIM
from hybrid.scoring.result import FRACTION, Result

ALONE, BLANK, TOOLS, REWORDED = (
    SimpleNamespace(solver=name, folder=None) for name in ("alone", "blank", "tools", "reworded")
)
GROUP: Any = SimpleNamespace(alone=ALONE, blank=BLANK, hybrid=TOOLS, paraphrased=REWORDED)
Ends = tuple[float, float] | None


def row(quantity: str, value: float | None, ends: Ends = None, p: float | None = 0.01, **fields: Any) -> Result:
    """Return a row about the solver with tools; its adjusted p value is below 0.05 if not given."""
    low, high = ends or (None, None)
    about = {"a": "alone", "b": "tools", "unit": FRACTION, **fields}
    return Result(section="", quantity=quantity, value=value, low=low, high=high, p_holm=p, **about)


def of_others(rows: Sequence[Result]) -> list[Result]:
    """Return rows of one task, and of another solver with tools, with the opposite numbers."""
    changed = []
    for original in rows:
        value, low, high = (
            None if number is None else -number for number in (original.value, original.low, original.high)
        )
        p = None if original.p_holm is None else 1 - original.p_holm
        other = replace(original, value=value, low=high, high=low, p_holm=p, n=(original.n or 0) + 7)
        changed += [replace(other, group="Jigsaw"), replace(other, b="other tools")]
    return changed


@dataclass(frozen=True)
class SectionRows:
    """Stand-in for a comparison, with what the sentences read: rows by section, and the claim about each pair of 40
    questions."""

    by_section: Mapping[str, Sequence[Result]]
    claim: str = "open"

    @property
    def found(self) -> Any:
        return SimpleNamespace(options=SimpleNamespace(margin=0.05))

    def of(self, section: str) -> tuple[Result, ...]:
        return tuple(self.by_section.get(section, ()))

    def pair(self, a: Any, b: Any) -> Any:
        if a is b:
            return SimpleNamespace(claim="apart", state="apart", n=0)
        is_turned = (a, b) in ((TOOLS, ALONE), (TOOLS, BLANK), (BLANK, ALONE))
        claim = {"more": "less", "less": "more"}.get(self.claim, self.claim) if is_turned else self.claim
        return SimpleNamespace(claim=claim, state=claim, n=40)

    def tested_pair(self, a: Any, b: Any) -> Any:
        return self.pair(a, b)


def sentences(section: str, rows: Sequence[Result], claim: str = "open", group: Any = GROUP) -> dict[str, str]:
    others = of_others(rows)
    rows_like: Any = SectionRows({section: (*others, *rows, *others)}, claim)
    return dict(review_sentences(rows_like, group))


def without(name: str) -> Any:
    """Return the group without this solver."""
    return SimpleNamespace(**{**vars(GROUP), name: None})


def shares(**values: float) -> list[Result]:
    names = {
        "called": "specialists right where called",
        "elsewhere": "specialists right where not called",
        "wrong": "called where wrong alone",
        "right": "called where right alone",
        "at": "calls at the place",
        "chance": "calls at the place by chance",
        "there": "right at the place",
        "away": "right elsewhere",
    }
    return [row(names[name], value, (value - 0.1, value + 0.1)) for name, value in values.items()]


WEAK = (
    "It calls tools where they are weak: the specialists are right on 20% of the questions with a call and on 90% of "
    "the others (-70 points, 95% CI -80 to -60)."
)
NEVER = (
    "It calls tools where they are weak: the specialists are right on 0% of the questions with a call and on 90% of "
    "the others (-90 points, 95% CI -100 to -80)."
)
STRONG = (
    "It calls tools where they are strong: the specialists are right on 90% of the questions with a call and on 20% of "
    "the others (+70 points, 95% CI 60 to 80)."
)


@pytest.mark.parametrize(
    ("value", "ends", "p", "expected"),
    [
        (-0.7, (-0.8, -0.6), 0.01, {"calls.weak": WEAK}),
        (0.7, (0.6, 0.8), 0.01, {"calls.strong": STRONG}),
        (-0.9, (-1.0, -0.8), 0.01, {"calls.weak": NEVER}),
        (-0.7, (-0.8, -0.6), 0.06, {}),
        (-0.7, (-0.8, -0.6), None, {}),
        (0.7, (-0.1, 0.8), 0.01, {}),
        (-0.7, (-0.8, 0.0), 0.01, {}),
        (0.7, (0.0, 0.8), 0.01, {}),
        (-0.7, None, 0.01, {}),
    ],
)
def test_where_a_model_calls_tools(value: float, ends: Ends, p: float | None, expected: dict[str, str]) -> None:
    called, elsewhere = (0.9 + value, 0.9) if value < 0 else (0.9, 0.2)
    rows = [row("difference where called", value, ends, p), *shares(called=called, elsewhere=elsewhere)]
    assert sentences("called", rows) == expected
    assert sentences("called", rows[1:]) == {}


FOUND = "60% of its 120 tool calls with a region look at the annotated place, and 20% would by chance"
MISSED = (
    "Its tool calls do not look at the annotated place significantly more often than by chance (60% against 20%, "
    "{size}, 95% CI {ends})."
)
THERE = (
    "; it is right on 80% of the questions where they cover it and on 30% of the others (+50 points, 95% CI {ends})."
)


@pytest.mark.parametrize(
    ("above", "difference", "expected"),
    [
        ((0.4, (0.3, 0.5), 0.01), None, {"places.found": f"{FOUND}."}),
        ((0.6, (0.5, 0.7), 0.01), None, {"places.found": f"{FOUND.replace('20%', '0%')}."}),
        ((0.4, (0.3, 0.5), 0.06), None, {"places.missed": MISSED.format(size="+40 points", ends="30 to 50")}),
        ((0.4, (0.0, 0.5), 0.01), None, {"places.missed": MISSED.format(size="+40 points", ends="0 to 50")}),
        (
            (-0.4, (-0.5, -0.3), 0.01),
            None,
            {"places.missed": MISSED.format(size="-40 points", ends="-50 to -30")},
        ),
        ((0.4, None, 0.01), (0.5, (0.4, 0.6), 0.01), {}),
        ((0.4, (0.3, 0.5), 0.01), (0.5, (0.4, 0.6), 0.01), {"places.found": FOUND + THERE.format(ends="40 to 60")}),
        ((0.4, (0.3, 0.5), 0.01), (0.5, (0.4, 0.6), 0.06), {"places.found": f"{FOUND}."}),
        ((0.4, (0.3, 0.5), 0.01), (0.5, (-0.1, 0.6), 0.01), {"places.found": f"{FOUND}."}),
        ((0.4, (0.3, 0.5), 0.01), (0.5, None, None), {"places.found": f"{FOUND}."}),
    ],
)
def test_whether_calls_look_at_the_place(above: Any, difference: Any, expected: dict[str, str]) -> None:
    rows = [row("above chance", *above), row("calls with a region", 120.0)]
    rows += shares(at=0.6, chance=0.0 if above[0] == 0.6 else 0.2, there=0.8, away=0.3)
    rows += [] if difference is None else [row("difference at the place", *difference)]
    assert sentences("places", rows) == expected


@pytest.mark.parametrize(
    ("value", "ends", "p", "expected"),
    [
        (0.1, (0.02, 0.2), 0.01, "words.matter"),
        (-0.1, (-0.2, -0.02), 0.01, "words.matter"),
        (0.1, (0.02, 0.2), 0.06, "words.open"),
        (0.1, (0.0, 0.2), 0.01, "words.open"),
        (0.1, None, 0.01, None),
    ],
)
def test_whether_the_wording_of_outputs_matters(value: float, ends: Ends, p: float, expected: str | None) -> None:
    rows = [row("other words", value, ends, p, a="tools", b="reworded")]
    # Other effects, and the opposite pair, have the opposite sign.
    opposite = [replace(each, quantity="oracle", b="reworded", group="") for each in of_others(rows)]
    opposite += [replace(each, a="reworded", b="tools", group="") for each in of_others(rows)]
    others = [*of_others(rows), *opposite]
    rows_like: Any = SectionRows({"effects": (*others, *rows, *others)})
    texts = dict(review_sentences(rows_like, GROUP))
    assert set(texts) == ({expected} if expected else set())
    assert all(f"{'+' if value > 0 else '-'}10 points (95% CI " in text for text in texts.values())
    # Without a folder it is unknown how many outputs kept their words.
    assert "kept" not in " ".join(texts.values())
    assert not dict(review_sentences(rows_like, without("paraphrased")))


def test_outputs_of_a_damaged_run_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object) -> tuple[int, int]:
        raise DataError("line 3 is damaged")

    monkeypatch.setattr(conclusion_review, "unchanged_outputs", damaged)
    rows_like: Any = SectionRows({"effects": [row("other words", 0.1, (-0.1, 0.2), a="tools", b="reworded")]})
    reworded = SimpleNamespace(solver="reworded", folder="run", recorded="tools")
    (sentence,) = review_sentences(rows_like, SimpleNamespace(**{**vars(GROUP), "paraphrased": reworded}))  # type: ignore[arg-type]
    words = "The same data in other words: +10 points (95% CI -10 to +20), no significant difference."
    assert sentence == ("words.open", words)


TOO_FEW = "2 samples were asked and not 3"
TOKENS, SECONDS = "points per 1,000 tokens", "points per second"


@pytest.mark.parametrize(
    ("value", "ends", "p", "case", "words"),
    [
        (0.2, (0.1, 0.3), 0.01, "price.more", "falls short of tools by 20 points (95% CI 10 to 30)."),
        (-0.2, (-0.3, -0.1), 0.01, "price.less", "is ahead of tools by 20 points (95% CI 10 to 30)."),
        (-0.2, (-0.3, -0.1), 0.06, "price.open", "of the model alone (-20 points, 95% CI -30 to -10)."),
        (0.2, (-0.1, 0.3), 0.01, "price.open", "of the model alone (+20 points, 95% CI -10 to +30)."),
    ],
)
def test_what_a_majority_at_the_same_price_gets(value: float, ends: Ends, p: float, case: str, words: str) -> None:
    over, samples = row("gain over samples at the same price", value, ends, p), row("samples at the same price", 3.0)
    rate = row(TOKENS, 4.0, (2.0, 6.0))
    assert {name: text.endswith(words) for name, text in sentences("price", [over, samples, rate], "more").items()} == {
        case: True
    }
    # Without a test at this price, the price of the gain is stated.
    for untested in (over.noted(TOO_FEW), replace(over, low=None, high=None)):
        assert sentences("price", [untested, samples, rate], "more") == {
            "price.rate": f"The gain comes to 4 {TOKENS} (95% CI 2 to 6)."
        }


@pytest.mark.parametrize(
    ("claim", "tokens", "seconds", "words"),
    [
        ("more", (1234.5, (9.44, 2000.0)), None, f"1,234 {TOKENS} (95% CI 9.4 to 2,000)"),
        ("more", (10.4, (9.96, 11.0)), (3.0, (1.0, 5.0)), f"10 {TOKENS} (95% CI 10 to 11)"),
        ("more", (4.0, (-2.0, 6.0)), (3.0, (1.0, 5.0)), f"3 {SECONDS} (95% CI 1 to 5)"),
        ("more", None, (3.0, (1.0, 5.0)), f"3 {SECONDS} (95% CI 1 to 5)"),
        ("more", (-4.0, (-6.0, -2.0)), None, None),
        ("more", (4.0, None), None, None),
        ("open", (4.0, (2.0, 6.0)), None, None),
        ("less", (4.0, (2.0, 6.0)), None, None),
        ("rule", (4.0, (2.0, 6.0)), None, None),
    ],
)
def test_the_price_of_a_gain(claim: str, tokens: Any, seconds: Any, words: str | None) -> None:
    rows = [row(name, *of, unit=name) for name, of in ((TOKENS, tokens), (SECONDS, seconds)) if of is not None]
    assert sentences("price", rows, claim) == ({"price.rate": f"The gain comes to {words}."} if words else {})
    assert sentences("price", rows, claim, without("alone")) == {}


@pytest.mark.parametrize(
    ("n", "high", "is_stated"),
    [(10, 0.496, True), (9, 0.496, False), (10, 0.5, False), (10, None, False), (None, 0.4, False)],
)
def test_outputs_are_ignored_if_most_of_enough_are(n: int | None, high: float | None, is_stated: bool) -> None:
    used = row("right outputs used", 0.47, None if high is None else (0.446, high), n=n, ids=("one", "two"))
    words = "Of 10 right tool outputs that the model needed, it used 2 (95% CI 45 to 50%)."
    assert sentences("used", [used]) == ({"used.shown": words} if is_stated else {})


def test_the_lower_end_0_of_an_interval_is_printed() -> None:
    text = sentences("used", [row("right outputs used", 0.0, (0.0, 0.2), n=20)])["used.shown"]
    assert text == "Of 20 right tool outputs that the model needed, it used 0 (95% CI 0 to 20%)."


@pytest.mark.parametrize(
    ("note", "p", "is_stated"),
    [
        ("changes nothing within 0.05", 0.01, True),
        ("changes nothing within 0.05", 0.06, False),
        ("not shown: changes nothing within 0.05", 0.01, False),
    ],
)
def test_perfect_output_changes_nothing_if_that_holds(note: str, p: float, is_stated: bool) -> None:
    perfect = row("effect of perfect output", -0.01, (-0.03, 0.02), p, note=note)
    words = "Even perfect tool output changes nothing (-1 points, 90% CI -3 to +2)."
    assert sentences("used", [perfect]) == ({"used.shown": words} if is_stated else {})


@pytest.mark.parametrize(
    ("value", "ends", "p", "is_stated"),
    [
        (-0.6, (-0.7, -0.5), 0.01, True),
        (-0.8, (-0.9, -0.7), 0.01, True),
        (-0.6, (-0.7, -0.5), 0.06, False),
        (-0.6, (-0.7, 0.0), 0.01, False),
        (0.6, (0.5, 0.7), 0.01, False),
        (-0.6, None, 0.01, False),
    ],
)
def test_calls_are_misplaced_if_they_are_rarer_where_needed(
    value: float, ends: Ends, p: float, is_stated: bool
) -> None:
    rows = [row("selection", value, ends, p), *shares(wrong=0.8 + value, right=0.8)]
    of_wrong, size, interval = ("20%", "-60", "-70 to -50") if value > -0.8 else ("0%", "-80", "-90 to -70")
    words = (
        f"It calls tools on {of_wrong} of what it gets wrong alone and on 80% of what it gets right ({size} points, "
        f"95% CI {interval})."
    )
    assert sentences("selection", rows) == ({"used.shown": words} if is_stated else {})


@pytest.mark.parametrize(
    ("value", "ends", "p", "n", "of_others", "case", "words"),
    [
        (0.2, (0.1, 0.3), 0.01, 49, 51, "selection.more", "adds 20 points (10 to 30)."),
        (-0.2, (-0.3, -0.1), 0.01, 49, 51, "selection.less", "costs 20 points (10 to 30)."),
        (0.2, (0.1, 0.3), 0.06, 49, 51, None, ""),
        # The interval decides the direction, so it must be on one side of 0.
        (0.2, (0.0, 0.3), 0.01, 49, 51, None, ""),
        (0.2, (-0.1, 0.3), 0.01, 49, 51, None, ""),
        (-0.2, (-0.3, 0.0), 0.01, 49, 51, None, ""),
        (0.2, (0.1, 0.3), 0.01, 50, 50, None, ""),
        (0.2, (0.1, 0.3), 0.01, 49, None, None, ""),
        (0.2, None, 0.01, 49, 51, None, ""),
    ],
)
def test_the_effect_where_tools_are_called_on_less_than_half(
    value: float, ends: Ends, p: float, n: int, of_others: int | None, case: str | None, words: str
) -> None:
    rows = [row("effect of output where called", value, ends, p, n=n)]
    rows += [] if of_others is None else [row("effect of output where not called", 0.0, (-0.1, 0.1), n=of_others)]
    sentence = f"On the 49 questions with a call, tool output {words.replace('(', '(95% CI ')}"
    assert sentences("selection", rows) == ({case: sentence} if case else {})


@pytest.mark.parametrize(
    ("room", "ends", "least", "state", "case"),
    [
        (0.0, (0.0, 0.09), 0.1, "open", "room.none"),
        (0.0, (0.0, 0.09), None, "less", "room.none"),
        (0.0, None, 0.1, "open", None),
        (None, None, 0.1, "open", None),
        (0.05, (0.01, 0.2), 0.1, "open", "room.small"),
        (0.05, (0.01, 0.2), 0.1, "more", None),
        (0.05, (0.01, 0.2), 0.1, "less", None),
        (0.1, (0.01, 0.2), 0.1, "open", None),
        (0.2, (0.1, 0.3), 0.1, "open", None),
        (0.05, (0.01, 0.2), None, "open", None),
        (0.05, None, 0.1, "open", None),
    ],
)
def test_room_for_a_gain(room: float | None, ends: Ends, least: float | None, state: str, case: str | None) -> None:
    words = {
        "room.none": "The model alone is right on all of 40 questions: no gain is possible.",
        "room.small": (
            "The model alone leaves 5 points to gain, and this run can detect 10 points (80% power): a gain is "
            "unlikely to be detected."
        ),
    }
    rows = [row("room above the model alone", room, ends), row("least detectable gain", least)]
    expected = {case: words[case]} if case else {}
    assert sentences("headroom", rows, state) == expected
    assert sentences("headroom", rows[:1], state) == (expected if case == "room.none" else {})
    assert sentences("headroom", rows[1:], state) == {}
    assert sentences("headroom", rows, state, without("alone")) == {}


def equivalence(note: str, p: float | None = 0.01) -> list[Result]:
    sides = {
        "gain": ("alone", "tools"),
        "effect of offering": ("alone", "blank"),
        "effect of output": ("blank", "tools"),
    }
    rows = [row(name, 0.01, (-0.02, 0.03), p, a=a, b=b, note=note) for name, (a, b) in sides.items()]
    # Other effects, of solvers that are not compared, do not matter for the equality of the compared solvers.
    return [*rows, *(replace(each, b="other tools", value=0.4) for each in rows)]


@pytest.mark.parametrize(
    ("note", "p", "claim", "is_stated"),
    [
        ("equal within 0.05", 0.01, "open", True),
        ("equal within 0.05", 0.01, "more", True),
        *(("equal within 0.05", 0.01, claim, False) for claim in NO_CLAIM),
        ("equal within 0.05", 0.06, "open", False),
        ("not shown to be equal within 0.05", 0.01, "open", False),
        ("equal within 0.05; depends on how unanswered questions count", 0.01, "open", False),
    ],
)
def test_what_is_equal_has_a_claim(note: str, p: float, claim: str, is_stated: bool) -> None:
    rows_like: Any = SectionRows({"equivalence": equivalence(note, p)}, claim)
    each = "(+1 points, 90% CI -2 to +3)"
    words = f"with tools and alone {each}; with blank tools and alone {each}; with tools and with blank tools {each}"
    assert dict(review_sentences(rows_like, GROUP)) == (
        {"equal.shown": f"Equal within 5 points: {words}."} if is_stated else {}
    )
    without_blank = dict(review_sentences(rows_like, without("blank")))
    assert without_blank == (
        {"equal.shown": f"Equal within 5 points: with tools and alone {each}."} if is_stated else {}
    )
    without_alone = dict(review_sentences(rows_like, without("alone")))
    assert set(without_alone) == ({"equal.shown"} if is_stated else set())


@pytest.mark.parametrize("claim", ["open", *NO_CLAIM])
def test_pairs_that_were_left_out_are_equal_only_with_a_claim(claim: str) -> None:
    class LeftOut(SectionRows):
        def tested_pair(self, a: Any, b: Any) -> Any:
            return SimpleNamespace(claim=claim)

    rows_like: Any = LeftOut({"equivalence": equivalence("equal within 0.05", 0.01)}, "apart")
    assert set(dict(review_sentences(rows_like, GROUP))) == ({"equal.shown"} if claim == "open" else set())


@pytest.mark.parametrize(
    ("value", "ends", "p", "n", "reason", "case", "words"),
    [
        (0.1, (0.05, 0.15), 0.01, 3, "", "pooled.more", "tools add 10 points (95% CI 5 to 15; between"),
        (-0.1, (-0.15, -0.05), 0.01, 3, "", "pooled.less", "tools cost 10 points (95% CI 5 to 15; between"),
        (0.1, (-0.05, 0.15), 0.5, 3, "", "pooled.open", "no significant effect (+10 points, 95% CI -5 to +15; between"),
        # The interval excludes 0 before adjustment.
        (-0.1, (-0.15, -0.05), 0.06, 3, "", "pooled.open", "effect (-10 points, 95% CI -15 to -5; between"),
        (0.1, (-0.05, 0.15), 0.5, 2, "", "pooled.few", "tools change the score by +10 points (random-effects mean)"),
        (0.1, (0.05, 0.15), 0.01, 2, "", "pooled.more", "tools add 10 points"),
        (0.1, (-0.05, 0.15), 0.5, 2, "from x", "pooled.unclaimed", "by +10 points ("),
        (-0.1, (-0.15, -0.05), 0.01, 3, "from y", "pooled.unclaimed", "I2 65%), from y."),
        (0.1, (0.05, 0.15), 0.01, 4, "", "pooled.more", "Over 4 models, tools add 10 points"),
        (0.1, None, 0.01, 3, "", None, ""),
    ],
)
def test_the_effect_over_models(
    value: float, ends: Ends, p: float, n: int, reason: str, case: str | None, words: str
) -> None:
    rows = [
        row("effect of output", -value, None, p, n=n + 4),
        replace(row("gain", value, ends, p, n=n), no_claim=reason),
        row("gain: tau", 0.04 if n < 4 else 0.0, n=n),
        row("gain: I2", 0.65, n=n),
        row("gain: one more model", -value, (-0.9, 0.9), 0.9, n=n + 4),
    ]
    rows_like: Any = SectionRows({"pooled": rows})
    texts = dict(pooled_sentences(rows_like))
    assert set(texts) == ({case} if case else set())
    assert all(words in text for text in texts.values())
    assert all(
        name == "pooled.few" or f"tau {4 if n < 4 else 0} points, I2 65%" in text for name, text in texts.items()
    )
    assert dict(pooled_sentences(SectionRows({"pooled": rows[:1]}))) == {}  # type: ignore[arg-type]
