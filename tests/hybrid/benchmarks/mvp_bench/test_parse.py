"""The authors' parsing rules, and the form of the options in a question's text."""

from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.mvp_bench.parse import circular_rule, read_options, single_run_rule, yes_no_rule
from hybrid.core.types import LETTERS


@given(st.text(), st.integers(2, 8))
def test_rules_never_raise_and_never_leave_what_was_offered(text: str, choices: int) -> None:
    assert yes_no_rule(text) in ("yes", "no", None)
    for rule in (single_run_rule, circular_rule):
        letter = rule(text, choices)
        assert letter is None or letter in tuple(LETTERS[:choices])
        assert rule(f" \n{text}\t", choices) == letter
    assert yes_no_rule(f" \n{text}\t") == yes_no_rule(text)


@given(st.text(), st.integers(2, 8))
def test_what_the_circular_rule_reads_the_single_run_rule_reads_too(text: str, choices: int) -> None:
    letter = circular_rule(text, choices)
    assert letter is None or single_run_rule(text, choices) == letter


OPTION = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)


@given(st.lists(OPTION, min_size=2, max_size=8))
def test_options_come_back_as_written(options: list[str]) -> None:
    lines = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
    assert read_options(f"What is it?\n{lines}\nAnswer with a letter.") == tuple(options)
