"""A solver reaches no target, no id and no other question from what it is given, whatever tools return."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

TARGET = "a target that no prompt says"


def reachable(start: Any) -> Iterator[Any]:
    """Everything that attributes, containers, closures, defaults and bound methods lead to; not classes and modules."""
    seen, waiting = {id(start): start}, [start]
    while waiting:
        one = waiting.pop()
        yield one
        found = [one.__closure__, one.__defaults__, one.__kwdefaults__, one.__dict__] if is_function(one) else None
        for other in gc.get_referents(one) if found is None else found:
            if id(other) not in seen and not isinstance(other, type | ModuleType | CodeType):
                seen[id(other)] = other
                waiting.append(other)


def is_function(one: Any) -> bool:
    return isinstance(one, FunctionType)


def test_the_walk_finds_what_is_hidden_in_closures_methods_and_slots() -> None:
    @dataclass(frozen=True, slots=True)
    class Slotted:
        inner: Any

        def method(self) -> Any:
            return self.inner

    def closure(one: Any) -> Any:
        return lambda *, given=one: (one, given)

    for hidden in (Slotted(TARGET), Slotted(TARGET).method, closure(TARGET), [{"key": (closure([TARGET]),)}]):
        assert TARGET in [one for one in reachable([hidden]) if isinstance(one, str)]
