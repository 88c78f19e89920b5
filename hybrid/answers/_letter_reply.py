"""A reply prepared for the letter rules: its parts, the offered choices, and a search for choices in a part."""

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

from hybrid.answers.base import CUE, answer_part, bare, normalise, plain, sentences
from hybrid.answers.lexicon import TRANSLATIONS

# Names of option letters in the questions of the benchmarks.
NOUN: Final = (
    r"(?i:option|choice|point|box|picture|image|figure|letter|answer"
    r"|opción|opção|opzione|вариант|punkt|punto|ponto|точка|选项|選項|選択肢|보기|선택지|点|점)"
)
# Words after a lone "A" that show it is a label and not the article.
AFTER_A: Final = (
    r"(?:(?:is|was|does|has)(?:n't)?|because|since|as|and|or|but|in|on|to|with|appears|seems|matches|corresponds|would"
    r"|might|may|could|must|cannot|can't|perhaps|vs|more|best|fits|fails|wins|looks|shows|lies|sits|stands|contains"
    r"|depicts|lacks|encloses|continues|completes|belongs|remains)"
)
# After these a lone "A" is a label whatever follows: `option A shows ...`.
BEFORE_A: Final = r"(?:(?<=[Oo]ption )|(?<=[Cc]hoice )|(?<=[Pp]oint )|(?<=[Bb]ox )|(?<=[Ll]etter ))"
# Words after a lone "I" that show it is a label and not the speaker.
AFTER_I: Final = r"(?:is|has|because|since|and|or|appears|seems|matches|corresponds|fits)"
# No letter follows a label, except "is", "because" and "or" in languages that are written without blanks.
END: Final = r"(?:(?![\w'])|(?=です|だ。|입니다|이다|因为|因為|か|或|还是|또는))"
# Shorter choice texts ("no", "3") occur in prose by chance, so they count only where an answer is announced.
PROSE_LENGTH: Final = 4
_ARTICLE: Final = re.compile(r"^(?:the|a|an)\s+")


@lru_cache(maxsize=64)
def label(letters: str) -> str:
    """Return a pattern with two groups for a label that cannot be a word: bracketed, or a lone capital."""
    any_label = "".join(map(re.escape, letters))
    no_word = any_label.replace("A", "").replace("I", "")
    lone = rf"[{no_word}]{END}" if no_word else r"(?!)"
    article = rf"|(?:{BEFORE_A}A{END}|A{END}(?!\s(?!{AFTER_A}\b)[a-z]))" if "A" in letters else ""
    article += rf"|I{END}(?!\s(?!{AFTER_I}\b)[a-z])" if "I" in letters else ""
    return rf"(?:[(\[<]\s?([{any_label}])\s?[)\]>]|(?<![A-Za-z0-9_'])(?<!\bN/)({lone}{article}))"


def group(match: re.Match[str]) -> str:
    """Return the first group that took part in a match."""
    return next(g for g in match.groups() if g is not None)


@dataclass(frozen=True)
class LetterReply:
    """A reply, and the labels of the choices.

    `text` is the normalised reply, which is never empty where rules run. `letters` are all labels, and `offered` are
    those of `choices`.
    """

    text: str
    letters: str
    offered: str
    choices: tuple[str, ...]

    @cached_property
    def forms(self) -> tuple[tuple[str, str], ...]:
        """(lower-case spelling, label) of every known choice, with and without article, longest spelling first."""
        return _forms(self.offered, self.choices)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines that are not blank."""
        return tuple(line.strip() for line in self.text.split("\n") if line.strip())

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The sentences in order."""
        return sentences(self.text)

    @cached_property
    def _label(self) -> re.Pattern[str]:
        return re.compile(label(self.letters))

    @cached_property
    def _choice(self) -> re.Pattern[str] | None:
        forms = [re.escape(form) for form, _ in self.forms if len(form) >= PROSE_LENGTH]
        # Next to a slash, a short text counts too: `red/green`.
        short = "|".join(re.escape(form) for form, _ in self.forms if len(form) < PROSE_LENGTH)
        forms += [rf"(?:{short})(?=\s?/\s?\w)", rf"(?:(?<=/)|(?<=/\s))(?:{short})"] if short else []
        return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)") if forms else None

    def choice_at_start(self, piece: str) -> tuple[str, int] | None:
        """Return the label of the choice whose text starts `piece`, and the text's length; the longest text wins."""
        low = _ARTICLE.sub("", piece.casefold())
        skipped = len(piece.casefold()) - len(low)
        for form, name in self.forms:
            if low.startswith(form) and not low[len(form) : len(form) + 1].isalnum():
                return name, skipped + len(form)
        return None

    @cached_property
    def by_letter(self) -> "LetterReply":
        """Return the reply without the texts of the choices, so that only letters name a choice."""
        return replace(self, choices=("",) * len(self.choices))

    def text_of(self, name: str) -> str:
        """Return the text of the choice called `name`, in lower case; empty if it was not offered or is unknown."""
        return self.choices[self.letters.index(name)].casefold() if name in self.offered else ""

    def asks(self, name: str) -> bool:
        """Return whether the text of the choice called `name` is itself a question."""
        return self.text_of(name).rstrip().endswith("?")

    def is_choice(self, name: str, piece: str) -> bool:
        """Return whether `piece` is empty or the text of the choice called `name`."""
        low = bare(piece)
        return not low or (low, name) in self.forms

    def bracketed(self, piece: str) -> frozenset[str]:
        """Return the labels in brackets in `piece`, offered or not."""
        return frozenset(m[1] for m in self._label.finditer(piece) if m[1] is not None)

    def find_labels(self, piece: str) -> frozenset[str]:
        """Return the offered labels that `piece` names: by bracketed letter, else by lone letter, else by choice text.

        A bracketed letter that was not offered shows that the reply labels something else (such as the images), so only
        choice texts count.
        """
        brackets = self.bracketed(piece)
        if brackets:
            return brackets if brackets <= set(self.offered) else self.chosen_by_text(piece)
        lone = frozenset(m[2] for m in self._label.finditer(piece) if m[2] is not None)
        return (lone & set(self.offered)) or self.chosen_by_text(piece)

    def chosen_by_text(self, piece: str) -> frozenset[str]:
        """Return the labels of the choices whose text is in `piece`."""
        if self._choice is None:
            return frozenset()
        labels = dict(self.forms)
        return frozenset({labels[m[0]] for m in self._choice.finditer(piece.casefold())})


# Cached, because most questions of a task offer the same choices, such as `yes` and `no`.
@lru_cache(maxsize=256)
def _forms(letters: str, choices: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    names_by_form: dict[str, set[str]] = {}
    for name, choice in zip(letters, choices, strict=True):
        text = bare(plain(choice))
        for form in {text, _ARTICLE.sub("", text), text.replace("/", " / "), *TRANSLATIONS.get(text, ())} - {""}:
            names_by_form.setdefault(form, set()).add(name)
    unique = [(form, names.pop()) for form, names in names_by_form.items() if len(names) == 1]
    return tuple(sorted(unique, key=lambda pair: (-len(pair[0]), pair[0])))


def read(text: str, choices: tuple[str, ...], letters: str) -> LetterReply:
    """Prepare `text`, the reply to a question with these choices."""
    reply_text = _small(letters).sub(
        lambda match: match[1] + re.sub(r"\b[a-z]\b", lambda letter: letter[0].upper(), match[2]), answer_part(text)
    )
    return LetterReply(reply_text, letters, letters[: len(choices)], tuple(normalise(c) for c in choices))


@lru_cache(maxsize=64)
def _small(letters: str) -> re.Pattern[str]:
    """Return a pattern for announced lower-case letters and alternatives to them: `answer is d.`, `answer: b or c`.

    Letters that are also words (an article, `e` and `o` for "and" and "or", `i`, `y`) count only where a clause ends.
    """
    words = "aeiouy"
    plain, end = "".join(set(letters.lower()) - set(words)), r"(?=\s?(?:[.,;:!)\n]|$))"
    option = rf"(?:[{re.escape(plain)}](?![\w'.+&-]|\.\w)|[{re.escape(plain)}](?=\.(?:\s(?![0-9])|$))|[{words}]{end})"
    cue = rf"(?i:{CUE})[\s:=\"'(\-]{{0,6}}(?:(?i:{NOUN})\s)?"
    return re.compile(rf"({cue})({option}(?:\)?\s?(?:or|and|/|,)\s?\(?{option})*)")
