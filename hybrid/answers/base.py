"""Shared parts of the answer parsers: the `Parsed` result, ordered rules, and the normalisation of a reply's text.

Use them through `hybrid.answers.parse`.
"""

import re
import string
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Generic, TypeVar

from hybrid.core.thinking import without_thoughts

T = TypeVar("T")
R = TypeVar("R")

NO_RULE: Final = "none"


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """An answer read from a reply, and the name of the rule that read it.

    Raises `ValueError` if `value` is None but `rule` is not "none", or the reverse.
    """

    value: T | None
    rule: str

    def __post_init__(self) -> None:
        if (self.value is None) != (self.rule == NO_RULE):
            pair = f"value {self.value!r} does not match rule {self.rule!r}"
            raise ValueError(f"{pair}: None goes with {NO_RULE!r} only")


def undecided() -> Parsed[T]:
    """Return the result for a reply from which nothing could be read."""
    return Parsed(None, NO_RULE)


def first_match(rules: Iterable[Callable[[R], T | None]], reply: R) -> Parsed[T]:
    """Try `rules` in order on `reply`; return the first value that is not None, with its function's name as rule."""
    for rule in rules:
        value = rule(reply)
        if value is not None:
            return Parsed(value, rule.__name__.lstrip("_"))
    return undecided()


# Markdown's underscore counts as whitespace here, so that `_A_` reads like `A`.
_EDGE: Final = "".join(c for c in map(chr, range(0x3001)) if c.isspace()) + "_"
_QUOTES: Final = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "「": '"', "」": '"'}
)
_TOKENS: Final = re.compile(r"</?s>|<\|[^|<>\n]{1,40}\|>|<(?:bos|eos|pad|unk|end_of_turn)>|\[/?INST\]")
_EMPHASIS: Final = re.compile(r"[*`]+")
_UNDERSCORES: Final = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_HEADING: Final = re.compile(r"^#{1,6}[ \t]+", re.MULTILINE)
_FENCE_TAG: Final = re.compile(r"(?i)(?:json|text|plaintext|markdown|latex|python)\n")
_BLANKS: Final = re.compile(r"[^\S\n]+")
_LINE_BREAKS: Final = re.compile(r" ?\n ?")
_GAPS: Final = re.compile(r"\n{3,}")
_LATEX: Final = re.compile(r"\\(?:boxed|fbox|text(?:bf|it|rm)?|math(?:bf|rm|it|bb))(?![a-zA-Z])|\\[()\[\]]|[${}]")


# Number of characters read at the start and the end of a reply; the middle of a longer one is left out.
READ_FIRST: Final = 5_000
READ_LAST: Final = 20_000


# Maximum length of texts whose normalised form is cached.
SHORT: Final = 100


def within_reach(text: str) -> str:
    """Return a text of at most `READ_FIRST` + `READ_LAST` characters unchanged; of a longer text, return both ends."""
    if len(text) <= READ_FIRST + READ_LAST:
        return text
    return f"{text[:READ_FIRST]}\n\n{text[-READ_LAST:]}"


def normalise(text: str) -> str:
    """Return the reply (or its two ends, if it is long) in one canonical spelling.

    Applies NFKC (full-width forms, no-break spaces, ligatures) and removes format characters (zero-width, bidirectional
    marks), model tokens (`<s>`, `<|im_end|>`), thoughts (up to the last `</think>`, or from a `<think>` that never
    ends), markdown emphasis, headings and code fences. Curly quotes become straight; runs of blanks become one blank,
    runs of blank lines one. Letters, numbers, brackets and braces stay. Runs in linear time.
    """
    return _remembered(text) if len(text) <= SHORT else _normalised(text)


def _normalised(text: str) -> str:
    text = within_reach(text)
    if not text.isascii():
        # NFKC can turn one character into eighteen, so the length is limited again.
        text = within_reach(unicodedata.normalize("NFKC", text))
        text = "".join(c for c in text if unicodedata.category(c) != "Cf").translate(_QUOTES)
    text = without_thoughts(text)
    text = _EMPHASIS.sub("", _TOKENS.sub("", text)).strip(_EDGE)
    text = "\n".join(text.splitlines())
    text = _FENCE_TAG.sub("", text, count=1) if _FENCE_TAG.match(text) else text
    text = _UNDERSCORES.sub("", _HEADING.sub("", text.strip(_EDGE)))
    text = _LINE_BREAKS.sub("\n", _BLANKS.sub(" ", text))
    return _GAPS.sub("\n\n", text).strip(_EDGE)


# Cached, because the same options, letters and words occur again and again.
_remembered: Final = lru_cache(maxsize=4096)(_normalised)


def plain(text: str) -> str:
    r"""Apply `normalise` and remove braces and LaTeX commands: `\boxed{\text{B}}` and `$B$` become B."""
    return _without_latex(normalise(text))


def _without_latex(text: str) -> str:
    return _BLANKS.sub(" ", _LATEX.sub("", text)).strip(_EDGE)


# Names that replies use for the part with their answer: a key of JSON, or a tag.
_PART: Final = (
    r"(?:(?:my|the|final|best|correct|predicted|selected|chosen)[ _-]?){0,2}"
    r"(?:answer|final|choice|option|selection|prediction|verdict|result|conclusion|output|response|count|total|order"
    r"|ranking|sequence|views|parts)"
)
_KEYED: Final = re.compile(
    rf"(?i)[\"']({_PART}s?)[\"']\s?:\s?(?:\"([^\"]*)\"|'([^'\n]*)'|\[([^\[\]]*)\]|([^,{{}}\[\]\n\"']+)"
    # An object with the answer: `{"answer": {"letter": "B", "text": "the second"}}`
    r"|\{[^{}]{0,200}?[\"'](?:letter|label|option|choice|key|id|value|number|answer)[\"']\s?:\s?[\"']?([^{}\"',\n]*))"
)
_TAG_ENDS: Final = re.compile(rf"(?i)</({_PART})>[\s.]*\Z")
_BOX: Final = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}[\s.$\\)\]]*\Z")
_CALL: Final = re.compile(
    r"\{[^{}]{0,300}[\"'](?:arguments|parameters|args|tool_input)[\"']\s?:\s?(?:\{[^{}]{0,300}\})?[^{}]{0,300}\}"
)
_RANK: Final = ("final", "answer")


def answer_part(text: str) -> str:
    """Return `plain` of the part of a reply that is marked as the answer, else of the whole reply.

    The part must be at the end of the reply: JSON with a key for it (`{"reasoning": ..., "final": "B"}`), a tag
    (`<answer>B</answer>`), or LaTeX's box. A tool call in JSON is removed.
    """
    clean = _CALL.sub("", normalise(text))
    end = _TAG_ENDS.search(clean, max(0, clean.rfind("</")))
    begin = clean.lower().rfind(f"<{end[1].lower()}>", 0, end.start()) if end else -1
    if end and begin >= 0:
        return _without_latex(clean[begin + len(end[1]) + 2 : end.start()])
    if box := _BOX.match(clean, max(0, clean.rfind("\\boxed{"))):
        return _without_latex(box[1])
    values = list(_KEYED.finditer(clean)) if clean.endswith(("}", "}.")) else []
    if not values:
        return _without_latex(clean)
    # Use the last key for an answer, preferably a final one; a list loses its brackets.
    rank = [next((place for place, word in enumerate(_RANK) if word in m[1].lower()), len(_RANK)) for m in values]
    best = max(range(len(values)), key=lambda place: (-rank[place], place))
    return _without_latex(next((value for value in values[best].groups()[1:] if value is not None), ""))


_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])[\"')\]]{0,2}\s+|(?<=[。])|\n+")


def sentences(text: str) -> tuple[str, ...]:
    """Return the non-empty sentences of a normalised text, in order; a line break also ends one."""
    return tuple(part.strip() for part in _SENTENCE_END.split(text) if part.strip())


# Questions about an answer: `Is the answer A?`, `So could it be (B)?`, `¿Es A?`, `答案是A吗?`
_QUESTION: Final = re.compile(
    r"(?i)\s*(?:(?:so|and|but|or|then|well|now|hm+)\b[,\s]{1,2})?(?:¿|(?:is|are|was|were|isn't|aren't|do|does|did|don't"
    r"|can|could|couldn't|may|might|shall|should|shouldn't|will|would|wouldn't|must|has|have|what|which|who|why|how"
    r"|when|where|ist|sind|est-ce|è)\b)[^.!?\n]*\?|[^.!?\n]*[吗嗎か까]\s?\?"
)
_CONFIRMED: Final = re.compile(
    r"(?i)\W*(?:yes|yeah|yep|yup|correct|right|indeed|true|exactly|definitely|absolutely|sure|it (?:is|does|must be)"
    r"|i (?:think|believe|guess|would say)|i'd say|that(?:'s| is) (?:right|correct|it))\b"
)


def only_asks(text: str) -> bool:
    """Return whether a text is one question: it may name an answer, but gives none."""
    return text.endswith("?") and _QUESTION.fullmatch(text) is not None


def statement(text: str) -> str:
    """Return `answer_part` of a reply, or "" if it only asks a question."""
    answer = answer_part(text)
    return "" if only_asks(answer) else answer


def is_asked(match: re.Match[str]) -> bool:
    """Return whether a match is in a question, as in `Is the answer A?`, that the reply does not confirm afterwards."""
    text = match.string
    question = _QUESTION.match(text, max(text.rfind(mark, 0, match.start()) for mark in ".!?;:\n") + 1)
    return question is not None and question.end() >= match.end() and not _CONFIRMED.match(text, question.end())


# `There is no cat in the picture` states that something is absent. Before words such as "doubt", "answer" and
# "picture", the same beginning means something else.
_NO_THING: Final = (
    r"(?!(?:\w+\s)?(?:way|doubt|question|answer|reason|idea|evidence|indication|information|signs?|need|point|use|image|enough|sufficient|many|much|more"
    r"|picture|photo)\b)"
)
_ABSENT: Final = re.compile(
    r"(?i)there\s?(?:is|are|was|were)(?:n't|\snot)?\s(?:no|not|any|an?|a single)"
    rf"\s{_NO_THING}[^,.;!?]{{1,60}}?\s(?:(?:in|on) (?:the|this) (?:picture|image|photo(?:graph)?|scene|frame|view)"
    r"|visible|present|to be seen)[.!]?"
)


def denies_existence(text: str) -> bool:
    """Return whether a text is one sentence stating that something is not in the picture."""
    match = _ABSENT.fullmatch(text)
    return match is not None and re.search(r"\bno\b|\bnot\b|n't\b", match[0]) is not None and " or " not in match[0]


def bare(text: str) -> str:
    """Return a text in lower case without surrounding punctuation and blanks, for the comparison of whole replies."""
    return text.strip(string.punctuation + string.whitespace + "。、").casefold()


def _no_word_before(*words: str) -> str:
    return "".join(rf"(?<!\b{word} )".replace(r"\bn't", "n't") for word in words)


# Words before a cue after which it announces no answer: `the wrong answer is A`, `I doubt the answer is A`; `I can't
# choose A`, `most people would pick A`; `people guess A`.
_OTHER: Final = ("wrong", "incorrect", "second", "worst", "least likely", "alternative", "previous", "tempting")
_DOUBTED: Final = ("not", "n't", "doubt", "not think", "n't think", "n't believe")
_THE_ONE: Final = _no_word_before(*_OTHER, "other", "not an", *(f"{word} the" for word in _DOUBTED))
_HELD: Final = _no_word_before(*_DOUBTED, "never", "cannot")
_MEANT: Final = _HELD + _no_word_before(
    "could", "might", "refuse to", "hesitate to", "people would", "many would", "some would"
)
_MY: Final = (
    r"(?:(?<![\w'] )(?<!\w)|(?:(?<=\bmy )|(?<=\bi )|(?<=\bi'd )|(?<=\bi'll )|(?<=\bi would )|(?<=\bto )|(?<=\bbest )"
    r"|(?<=\bforced )|(?<=\beducated )|(?<=\bfinal )|(?<=\bwild )|(?<=\brough )|(?<=\bi'm )|(?<=\bi am )))"
)

# Every cue begins with one of these characters; a Latin or Cyrillic cue begins at the start of a word. Looking ahead
# for them, and testing the word of a cue before the forbidden words in front of it, makes parsing five times as fast.
_BEGINS: Final = r"(?=(?<!\w)[abcfgiloprsо답]|[答选選正정])"
_NAMES: Final = r"(?:answers?|choice|option|selection|result|conclusion|final)\b"
_CHOOSES: Final = r"(?:choose|select|pick|go with|gut says|it(?:'s| is))\b"
_FOREIGN: Final = r"(?:respuesta|resposta|risposta|réponse|antwort|lösung|antwoord)\b"

# Phrases that announce an answer, in the languages that models switch to: "the answer is", "Answer:", "the correct
# choice would be", "I would choose". "option A" alone announces nothing: it is the heading of an analysis, like "each
# option:".
CUE: Final = (
    rf"{_BEGINS}(?:\b(?={_NAMES}){_THE_ONE}(?<!each )(?<!every ){_NAMES}"
    r"[^\w\n(\[]{0,3}(?:is|are|was|would be|should be|will be|must be|be|:|=)(?![a-z])"
    rf"|\b(?=answer\b){_THE_ONE}{_MEANT}answer|\b(?={_CHOOSES}){_MEANT}{_CHOOSES}"
    rf"|\b(?=lean){_HELD}(?<!was )(?<!initially )(?<!you might )lean(?:ing)?(?: towards?)?\b"
    rf"|(?=guess){_MY}guess(?:ing)?(?: is)?\b|\b(?:is|be)\s?:"
    r"|\bif (?:i )?(?:am |was |were )?(?:forced|pressed|ha(?:d|ve) to)(?: to)?"
    r"(?: (?:answer|choose|decide|guess|pick|say))?\b,?"
    r"|(?<!错误)(?<!不)(?<!不能)(?<!不会)(?<!不应)(?<!排除)"
    r"(?:答案(?:应该|应当|应)?[是为:]*|选择|選擇|选项|選項|選択肢|选|正解は?)|答え[は:]*|(?:정답|\b답)[은:]*"
    r"|(?<!неправильный )(?<!неверный )\bответ\b"
    rf"|\b(?={_FOREIGN})(?<!falsche )(?<!mauvaise ){_FOREIGN}"
    r"(?: (?:correcta|correta|corretta|correcte|exacte|final|finale))?"
    r"(?: (?:es|é|è|est|ist|lautet|is|sería|seria|sarebbe|serait|wäre)\b(?: (?:la|el|die))?)?"
    r"|\b(?:opción correcta es|opção correta é|opzione corretta è|option correcte est|richtige option ist)\b"
    r"(?: (?:la|el))?)"
)
