"""Short exercises in copying and looking up, without pictures; an untrained network must learn these skills first.

- a list, repeated;
- letters with values, then values with their letters;
- letters with boxes or fixations, then these boxes, or boxes around the fixations, as in a call;
- the number of an image, then the option that names it;
- letters with falling values, then these letters;
- described things, then the answer to a question about them.

The skills are needed because calls copy numbers from a question, and an answer names the letter next to a tool's
output.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations
from typing import Any, Final

from hybrid.core.format_lines import FORMAT_LINES
from hybrid.core.types import LETTERS, Kind
from training.policy import ORDINALS, around
from training.sight import HUES, SHAPES, Thing, described
from training.vocabulary import WORDS

# Share of the exercises that ask about listed things.
ABOUT_SCENES: Final = 0.4


def drill(rng: random.Random) -> dict[str, Any]:
    """Return one exercise as a line of the file of conversations."""
    text = ""
    if rng.random() < ABOUT_SCENES:
        request, text, answered = _answered(rng)
    else:
        request, answered = rng.choice((_copied, _box_list_drill, _looked_up, _looked_up, _boxed, _numbered, _ordered))(
            rng
        )
    message = "\n".join(part for part in (text, answered) if part)
    turns = [{"role": "user", "content": request}, {"role": "assistant", "content": message}]
    return {"benchmark": "drill", "task": "drill", "form": "drill", "turns": turns, "tools": [], "given": text}


def _answered(rng: random.Random) -> tuple[str, str, str]:
    """Return a question about randomly listed things, their list, and the answer."""
    names = rng.sample([(colour, shape) for colour in HUES for shape in (True, False)], rng.randint(2, 4))
    values = [*names, *[rng.choice(names) for _ in range(rng.choice((0, 0, 1, 3)))]]
    placed = sorted((rng.randint(0, 10) / 10, rng.randint(2, 9) / 10, name) for name in values)
    items = [Thing(colour, round_, x, y, 0.01) for x, y, (colour, round_) in placed]
    request, answer = rng.choice((_how_many, _whether, _relation_drill, _which_colour))(rng, items)
    return request, described(items, SHAPES["ground"]), answer


def _name(name: Thing) -> str:
    return f"{name.colour} {SHAPES['ground'][not name.round]}"


def _how_many(rng: random.Random, items: list[Thing]) -> tuple[str, str]:
    name = _name(rng.choice(items))
    count = sum(_name(item) == name for item in items)
    first = rng.randint(max(0, count - 3), count)
    return _choices(
        f"How many {name}s are there in the image?", [str(first + step) for step in range(4)], count - first
    )


def _whether(rng: random.Random, items: list[Thing]) -> tuple[str, str]:
    values = {_name(item) for item in items}
    names = [f"{colour} {shape}" for colour in HUES for shape in SHAPES["ground"]]
    name = rng.choice(sorted(values) if rng.random() < 0.5 else [name for name in names if name not in values])
    text = f"Is there {'an' if name[0] in 'aeiou' else 'a'} {name} in the image?\nReply yes or no."
    return f"{text}\n{FORMAT_LINES[Kind.YES_NO]}", f"Answer: {'yes' if name in values else 'no'}"


def _relation_drill(rng: random.Random, items: list[Thing]) -> tuple[str, str]:
    """Ask about two things at different places, if their names differ."""
    count = Counter(map(_name, items))
    single = [name for name in items if count[_name(name)] == 1]
    pairs = [(a, b) for a, b in permutations(single, 2) if a.x != b.x and a.y != b.y]
    if not pairs:
        return _whether(rng, items)
    a, b = rng.choice(pairs)
    relations = {
        "at the left side of": a.x < b.x,
        "at the right side of": a.x > b.x,
        "above": a.y < b.y,
        "beneath": a.y > b.y,
    }
    relation = rng.choice(list(relations))
    return _choices(f"Is the {_name(a)} {relation} the {_name(b)}?", ["yes", "no"], int(not relations[relation]))


def _which_colour(rng: random.Random, items: list[Thing]) -> tuple[str, str]:
    """Ask about the only thing of a shape, if any shape occurs exactly once."""
    shapes = Counter(name.round for name in items)
    single = [item for item in items if shapes[item.round] == 1]
    if not single:
        return _how_many(rng, items)
    others = rng.sample([colour for colour in HUES if colour != single[0].colour], 3)
    place = rng.randint(0, 3)
    options = [*others[:place], single[0].colour, *others[place:]]
    return _choices(f"What colour is the {_name(single[0]).split()[1]} in the picture?", options, place)


def _choices(text: str, options: list[str], right: int) -> tuple[str, str]:
    """Return a question with its options and its format line, and the answer."""
    listing = "\n".join(f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False))
    message = f"{text}\nSelect from the following choices.\n{listing}\n{FORMAT_LINES[Kind.CHOICE]}"
    return message, f"Answer: ({LETTERS[right]})"


def _ordered(rng: random.Random) -> tuple[str, str]:
    """Write letters with falling values, as a tool output ranks boxes, then the letters in this order."""
    count = rng.randint(3, 6)
    letters = rng.sample("ABCDEFGH"[:count], count)
    values = sorted((rng.randint(5, 99) / 100 for _ in letters[1:]), reverse=True)
    text = ", ".join(f"{letter} {value:.2f}" for letter, value in zip(letters, (1.0, *values), strict=True))
    return f"Order, with the share of the first's saliency: {text}.", f"Answer: {''.join(letters)}"


def _unit(rng: random.Random) -> str:
    """Return a number or a word, each a single token."""
    return rng.choice(WORDS) if rng.random() < 0.4 else f"{rng.randint(0, 100) / 100:.2f}"


def _copied(rng: random.Random) -> tuple[str, str]:
    units = [_unit(rng) for _ in range(rng.randint(6, 24))]
    return ", ".join(units), ", ".join(units)


def _box_list_drill(rng: random.Random) -> tuple[str, str]:
    """Write boxes after their letters, then as in a call."""
    boxes = [(letter, [f"{rng.randint(0, 99) / 100:.2f}" for _ in range(4)]) for letter in "ABCD"[: rng.randint(1, 4)]]
    text = " ".join(f"[{letter}] [{', '.join(box)}]" for letter, box in boxes)
    rows = (_row(letter, tuple(map(float, box))) for letter, box in boxes)
    return text, f'"boxes": [{", ".join(rows)}]'


def _boxed(rng: random.Random) -> tuple[str, str]:
    """Write fixations after their letters, then the boxes around them as in a call."""
    spots = [(letter, rng.randint(2, 98) / 100, rng.randint(2, 98) / 100) for letter in "ABCD"[: rng.randint(1, 4)]]
    text = " ".join(f"[{letter}] ({x:.2f}, {y:.2f})" for letter, x, y in spots)
    return text, f'"boxes": [{", ".join(_row(letter, around(x, y)) for letter, x, y in spots)}]'


def _row(letter: str, box: tuple[float, ...]) -> str:
    sides = ", ".join(f'"{side}": {value:.2f}' for side, value in zip(("x0", "y0", "x1", "y1"), box, strict=True))
    return f'{{{sides}, "label": "{letter}"}}'


def _numbered(rng: random.Random) -> tuple[str, str]:
    """Write options that name images, then some images by number with their options."""
    names = rng.sample(ORDINALS[1:4], rng.randint(2, 3))
    text = "\n".join(f"({letter}) the {name} image" for letter, name in zip("ABC", names, strict=False))
    values = [rng.randrange(len(names)) for _ in range(rng.randint(2, 5))]
    lines = (f"Image {ORDINALS.index(names[place]) + 1} continues: ({'ABC'[place]})" for place in values)
    return text, "\n".join(lines)


def _looked_up(rng: random.Random) -> tuple[str, str]:
    """Write options, then some of them again, from the letter to the value or the other way round."""
    letters = "ABCDEFGH"[: rng.randint(2, 6)]
    values: list[str] = []
    while len(values) < len(letters):
        value = " ".join(_unit(rng) for _ in range(rng.randint(1, 2)))
        values += [] if value in values else [value]
    form = rng.choice(("({}) {}", "[{}] {}", "{}. {}"))
    text = rng.choice(("\n", "; ", " ")).join(form.format(*pair) for pair in zip(letters, values, strict=True))
    selected = rng.choices(list(zip(letters, values, strict=True)), k=rng.randint(4, 10))
    items = [f"{letter} {value}" if rng.random() < 0.3 else f"{value}: ({letter})" for letter, value in selected]
    return text, "\n".join(items)
