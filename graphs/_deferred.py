"""Defer packages that `import langgraph` loads but a run does not use; they are initialised on first access.

    defer("langgraph_sdk", "langsmith.types")
    import langgraph.graph

The initialisation of a deferred package runs at the first access to an attribute that it would set. Its submodules can
be imported before that. Clients of LangGraph's and LangSmith's servers take about a third of the time and memory of
`import langgraph.graph`, and a run uses none of them.
"""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

# Importing LangGraph needs one protocol of the first (the client of its servers) and one literal of the second (types
# of LangSmith's web API); a run needs nothing else of them.
DEFERRED: Final = ("langgraph_sdk", "langsmith.types")
# One lock for all packages: the initialisation of one may use another.
_LOCK = threading.RLock()
_RUNNING: set[str] = set()


class DeferredPackage(ModuleType):
    """A package whose initialisation has not ended."""

    def __getattr__(self, name: str) -> Any:
        """Run the initialisation, then return the attribute; other threads wait meanwhile."""
        with _LOCK:
            # The package itself may also ask for an attribute that it has not set yet.
            if type(self) is DeferredPackage and self.__name__ not in _RUNNING:
                _initialise(self)
        return ModuleType.__getattribute__(self, name)


def _initialise(package: DeferredPackage) -> None:
    spec = package.__spec__
    assert spec is not None  # noqa: S101 - `defer` has set both
    assert spec.loader is not None  # noqa: S101
    _RUNNING.add(package.__name__)
    try:
        spec.loader.exec_module(package)
    finally:
        _RUNNING.discard(package.__name__)
    package.__class__ = ModuleType  # type: ignore[assignment]


def defer(*names: str) -> None:
    """Defer the initialisation of packages, except those that are imported or not installed."""
    for name in names:
        parent, _, own_name = name.rpartition(".")
        if name in sys.modules or (parent and find_spec(parent) is None) or (spec := find_spec(name)) is None:
            continue
        package = module_from_spec(spec)
        package.__class__ = DeferredPackage
        sys.modules[name] = package
        if parent:
            setattr(sys.modules[parent], own_name, package)
