"""Cost of the tools in a model's context: bytes of JSON schema and tokens, by tool and for each benchmark's list.

    python -m bench.tools_offered                        bytes, and tokens estimated as a quarter of them
    python -m bench.tools_offered --encodings DIR        tokens of o200k_base, whose file is in DIR
    python -m bench.tools_offered --json menu.json       the numbers as well

The JSON is that of an OpenAI request, without spaces; the text is that of `--tool-calling text`. tiktoken, which comes
with the OpenAI client of LangChain, reads the file of an encoding from DIR under the name that its cache uses, and
otherwise downloads it, which is prevented here. The package litellm contains the files, so these commands are enough:

    uv pip install --no-deps --target ENCODINGS litellm
    python -m bench.tools_offered --encodings ENCODINGS/litellm/litellm_core_utils/tokenizers
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench._frame import options, write_json
from hybrid.models.text_protocol import describe
from hybrid.models.tokens import CHARACTERS_PER_TOKEN, tools_json
from hybrid.plugins.registry import load, names
from hybrid.tool import Tool

ENCODING = "o200k_base"
ENCODING_URL = f"https://openaipublic.blob.core.windows.net/encodings/{ENCODING}.tiktoken"

Count = Callable[[str], int]


def counter(encodings: Path | None) -> tuple[Count, str]:
    """Return a function that counts tokens, and its name.

    Raises `SystemExit` if the folder does not contain the encoding.
    """
    if encodings is None:
        return lambda text: len(text.encode()) // CHARACTERS_PER_TOKEN, f"bytes / {CHARACTERS_PER_TOKEN}"
    # tiktoken would download a missing file.
    if not (encodings / hashlib.sha1(ENCODING_URL.encode(), usedforsecurity=False).hexdigest()).is_file():
        raise SystemExit(f"{encodings} does not hold {ENCODING} under the name that tiktoken gives it")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(encodings)
    import tiktoken

    encoding = tiktoken.get_encoding(ENCODING)
    return lambda text: len(encoding.encode(text)), ENCODING


def size(name: str, tools: Sequence[Tool], count: Count) -> dict[str, Any]:
    """Return the size of some tools in one request: bytes in UTF-8 and tokens, as JSON and as text."""
    wire, text = tools_json(tools), describe(tools)
    of_json = {"json_bytes": len(wire.encode()), "json_tokens": count(wire)}
    return {"name": name, "tools": len(tools), **of_json, "text_bytes": len(text.encode()), "text_tokens": count(text)}


def measured(count: Count) -> list[dict[str, Any]]:
    """Return the sizes of each tool alone, of all tools together, and of each benchmark's list."""
    tools: dict[str, Tool] = {name: load("tools", name) for name in names("tools")}
    rows = [size(name, [tool], count) for name, tool in tools.items()]
    rows.append(size("all tools", list(tools.values()), count))
    menus = {name: load("hybrid.benchmarks", name).card.tools_offered for name in names("hybrid.benchmarks")}
    # If a card names no tools, all tools are offered, and all tools together already have a row.
    rows += [size(f"menu of {name}", [tools[item] for item in menu], count) for name, menu in menus.items() if menu]
    return rows


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    flags = options(__doc__, {"--encodings": Path, "--json": Path}, words)
    count, calls = counter(flags.encodings)
    rows = measured(count)
    print(f"{'':26}{'tools':>6}{'JSON bytes':>12}{'tokens':>8}{'text bytes':>12}{'tokens':>8}   ({calls})")
    for row in rows:
        print("{name:26}{tools:6}{json_bytes:12,}{json_tokens:8,}{text_bytes:12,}{text_tokens:8,}".format(**row))
    write_json(flags.json, {"tokens": calls, "sizes": rows})


if __name__ == "__main__":
    main()
