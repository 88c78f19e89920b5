"""Parse replies with another program, in the interpreter in which it is installed, without code of this project.

    PYTHON bench/_scorer_readers.py lmms-eval|vlmevalkit|inspect < questions.json > letters.json

A question is a pair of choices and reply. The parsers of lmms-eval and VLMEvalKit are functions in a file that imports
much more than they need, so the installed file is parsed and only these functions are executed.
"""

import ast
import json
import os
import re
import string
import sys
import sysconfig
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

Reader = Callable[[str, list[str]], str | None]


def load(file: str, *names: str) -> dict[str, Any]:
    """Execute the functions called `names` from an installed file, isolated from the rest."""
    import copy

    source = (Path(sysconfig.get_paths()["purelib"]) / file).read_text(encoding="utf-8")
    parts = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name in names]
    if len(parts) != len(names):
        raise SystemExit(f"{file} lacks some of {', '.join(names)}: it is not the pinned version")
    space: dict[str, Any] = {"re": re, "os": os, "string": string, "cp": copy, "Counter": Counter}
    exec(compile(ast.Module(parts, []), file, "exec"), space)  # noqa: S102 - functions of a package that we installed
    return space


def lmms_eval() -> Reader:
    """Parse like `blink_process_results`, with the letters of the choices or, without choices, all letters."""
    extract = load("lmms_eval/tasks/blink/utils.py", "_extract_answer_letter")["_extract_answer_letter"]
    return lambda reply, choices: extract(reply, string.ascii_uppercase[: len(choices)]) or None


def vlmevalkit() -> Reader:
    """Parse with `can_infer` and no judge; "Z" and no match count as no letter, as under its policy exact_matching."""
    infer = load("vlmeval/utils/matching_util.py", "can_infer_option", "can_infer_text", "can_infer")["can_infer"]

    def read(reply: str, choices: list[str]) -> str | None:
        result = infer(reply, dict(zip(string.ascii_uppercase, choices, strict=False)))
        return result if result and result != "Z" else None

    return read


def inspect() -> Reader:
    """Parse with `parse_answers` of the solver multiple_choice, for one correct choice."""
    from inspect_ai.solver._multiple_choice import parse_answers  # type: ignore[import-not-found,unused-ignore]

    def read(reply: str, choices: list[str]) -> str | None:
        state = types.SimpleNamespace(output=types.SimpleNamespace(completion=reply), choices=choices)
        return next(iter(parse_answers(state, multiple_correct=False)), None)

    return read


READERS = {"lmms-eval": lmms_eval, "vlmevalkit": vlmevalkit, "inspect": inspect}


if __name__ == "__main__":
    reader = READERS[sys.argv[1]]()
    json.dump([reader(reply, choices) for choices, reply in json.load(sys.stdin)], sys.stdout)
