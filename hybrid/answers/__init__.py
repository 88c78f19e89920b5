"""Parse the text of a reply to an answer, with the name of the rule that read it: one parser for all solvers.

parse(reply.text, prompt.kind, prompt.choices)

There is one module per form of answer: `letters`, `yes_no`, `integers`, `numbers`, `words`, `orders`, `places` (points,
boxes), `scanpaths`, `views`; `base` contains shared functions. No parser raises on any text, guesses, or returns a
choice that was not offered.
"""

from collections.abc import Callable, Sequence

from hybrid.answers.base import Parsed, undecided
from hybrid.answers.integers import parse_integer
from hybrid.answers.letters import parse_letter
from hybrid.answers.numbers import parse_number
from hybrid.answers.orders import parse_order
from hybrid.answers.places import parse_box, parse_point
from hybrid.answers.scanpaths import parse_scanpath
from hybrid.answers.views import ViewPlan, Views, parse_view_plan, parse_views
from hybrid.answers.words import parse_text
from hybrid.answers.yes_no import YesNo, parse_yes_no
from hybrid.core.types import Box, Kind, Point, Scanpath

Answer = (
    Parsed[str]
    | Parsed[YesNo]
    | Parsed[int]
    | Parsed[float]
    | Parsed[Point]
    | Parsed[Box]
    | Parsed[Scanpath]
    | Parsed[Views]
    | Parsed[ViewPlan]
)

# Number of ActiView's image parts if the prompt lists no choices.
DEFAULT_VIEWS = 4


def parse(text: str, kind: Kind | str, choices: Sequence[str] = ()) -> Answer:
    """Read any text as an answer of `kind`.

    Args:
        text: the reply; empty or blank is never an answer.
        kind: the prompt's kind.
        choices: the option texts in the order shown (choice, order); for views and view_plan one entry per part of the
            image, four parts if it is empty.

    Returns:
        choice: a letter; yes_no and continue: "yes" or "no"; integer: 0 or more; number: any finite number;
        text: the answer's text; order: all letters, such as "BCA"; point: `Point` and box: `Box` with the reply's
            numbers;
        scanpath: `Scanpath`; views: part numbers from 1; view_plan: `ViewPlan`; free: the text without surrounding
        blanks. If nothing could be read, the value is None and the rule "none".

    Raises:
        ValueError: an unknown kind, or more choices than letters.
    """
    parts = len(choices) or DEFAULT_VIEWS
    readers: dict[Kind, Callable[[], Answer]] = {
        Kind.CHOICE: lambda: parse_letter(text, choices),
        Kind.YES_NO: lambda: parse_yes_no(text),
        # Whether the model asks for more views.
        Kind.CONTINUE: lambda: parse_yes_no(text),
        Kind.INTEGER: lambda: parse_integer(text),
        Kind.NUMBER: lambda: parse_number(text),
        Kind.TEXT: lambda: parse_text(text),
        Kind.POINT: lambda: parse_point(text),
        Kind.BOX: lambda: parse_box(text),
        Kind.ORDER: lambda: parse_order(text, choices, complete=True),
        Kind.SCANPATH: lambda: parse_scanpath(text),
        Kind.VIEWS: lambda: parse_views(text, parts),
        Kind.VIEW_PLAN: lambda: parse_view_plan(text, parts),
        Kind.FREE: lambda: Parsed(text.strip(), "text") if text.strip() else undecided(),
    }
    return readers[Kind(kind)]()
