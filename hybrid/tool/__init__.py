"""The interface of a specialist tool: the names that a tool's file imports.

A simple tool is a function that is decorated with `@tool` (`hybrid/tool/functions.py`). A tool around a network is a
`Tool`, made of a card, typed arguments and backends (`hybrid/tool/base.py`).
"""

from typing import TYPE_CHECKING, Any

from hybrid.core.errors import ToolError as ToolError
from hybrid.core.types import LETTERS as LETTERS
from hybrid.core.types import Box as Box
from hybrid.core.types import Finding as Finding
from hybrid.core.types import Json as Json
from hybrid.core.types import Pixels as Pixels
from hybrid.core.types import Prompt as Prompt
from hybrid.tool.base import A as A
from hybrid.tool.base import A_co as A_co
from hybrid.tool.base import A_contra as A_contra
from hybrid.tool.base import Backend as Backend
from hybrid.tool.base import BackendCard as BackendCard
from hybrid.tool.base import BackendName as BackendName
from hybrid.tool.base import Bin as Bin
from hybrid.tool.base import Card as Card
from hybrid.tool.base import CheckCase as CheckCase
from hybrid.tool.base import CheckSeries as CheckSeries
from hybrid.tool.base import Claims as Claims
from hybrid.tool.base import Evidence as Evidence
from hybrid.tool.base import Found as Found
from hybrid.tool.base import KnownAnswer as KnownAnswer
from hybrid.tool.base import Need as Need
from hybrid.tool.base import P as P
from hybrid.tool.base import Picture as Picture
from hybrid.tool.base import Provenance as Provenance
from hybrid.tool.base import R as R
from hybrid.tool.base import ReducedPrecision as ReducedPrecision
from hybrid.tool.base import Request as Request
from hybrid.tool.base import Stages as Stages
from hybrid.tool.base import Tool as Tool
from hybrid.tool.base import json_of_args as json_of_args

if TYPE_CHECKING:
    from hybrid.tool.args import Args as Args
    from hybrid.tool.functions import tool as tool
    from hybrid.tool.outputs import ToolOutput as ToolOutput
    from hybrid.tool.signature import Image as Image
else:

    def __getattr__(name: str) -> Any:
        """Import names on first use, so that code that only passes tools on does not import pydantic."""
        if name not in ("Args", "Image", "ToolOutput", "tool"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from hybrid.tool import args, functions, outputs, signature

        return getattr({"Args": args, "Image": signature, "ToolOutput": outputs}.get(name, functions), name)
