"""Nouns in the singular, as detectors are given the names of things."""

from __future__ import annotations

from collections.abc import Mapping

IRREGULAR: Mapping[str, str] = {
    "people": "person",
    "persons": "person",
    "men": "man",
    "women": "woman",
    "children": "child",
    "mice": "mouse",
    "geese": "goose",
    "teeth": "tooth",
    "feet": "foot",
    "oxen": "ox",
    "knives": "knife",
    "wolves": "wolf",
    "leaves": "leaf",
    "loaves": "loaf",
    "shelves": "shelf",
    "scarves": "scarf",
    "buses": "bus",
    "potatoes": "potato",
    "tomatoes": "tomato",
    "sheep": "sheep",
    "fish": "fish",
    "deer": "deer",
    "scissors": "scissors",
    "glasses": "glasses",
    "skis": "skis",
    "pants": "pants",
    "wine glasses": "wine glass",
    "taxis": "taxi",
    "atlas": "atlas",
    "canvas": "canvas",
    "lens": "lens",
}


def singular(name: str) -> str:
    """A noun phrase in the singular: "red cars" is "red car", "wolves" is "wolf"; one that ends in no -s stays."""
    if name.strip().lower() in IRREGULAR:
        return IRREGULAR[name.strip().lower()]
    head, _, last = name.strip().rpartition(" ")
    return f"{head} {_one(last)}" if head else _one(last)


def _one(word: str) -> str:
    low = word.lower()
    if low in IRREGULAR:
        return IRREGULAR[low]
    if low.endswith(("ss", "us", "is")) or not low.endswith("s") or len(low) < 4:
        return word
    if low.endswith("ies"):
        return word[:-3] + "y"
    if low.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]
