"""From its inputs a solver reaches no target, no id and no other question, whatever tools return."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from hybrid.config import RunConfig, ServiceOptions, ToolOutput
from hybrid.core.types import Prompt, Question, Reply
from hybrid.running.engine import attempt_question
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.solving.controls import AskedQuestion
from hybrid.solving.solver import Solver, SolverContext

TARGET = "a target that no prompt says"


HIDDEN = "a fact of the protocol that no prompt says"


def reachable(start: Any) -> Iterator[Any]:
    """Yield objects reachable by attributes, containers, closures, defaults, bound methods; no classes or modules."""
    seen, waiting = {id(start): start}, [start]
    while waiting:
        value = waiting.pop()
        yield value
        values = (
            [value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__]
            if is_function(value)
            else None
        )
        for other in gc.get_referents(value) if values is None else values:
            if id(other) not in seen and not isinstance(other, type | ModuleType | CodeType):
                seen[id(other)] = other
                waiting.append(other)


def is_function(item: Any) -> bool:
    return isinstance(item, FunctionType)


@dataclass
class Spy(Solver):
    """Inspects its context, calls everything in it, and inspects it again."""

    objects: list[Any] = field(default_factory=list)
    calls: int = 0

    needs_model = True

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        self.objects += reachable([prompt, ctx])
        await ctx.tool("jigsaw", [image.name for image in prompt.images], {})
        await ctx.model([ctx.message(prompt)])
        self.calls += 1
        self.objects += reachable([prompt, ctx])
        return Reply("")


@pytest.fixture
def plan_of(fakes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`plan_of(mode)`: three puzzles, a recorded model, and tools that return the output of that mode."""
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    data = fakes.blink_folder(tmp_path / "data", 3, 0)
    recorded = fakes.recordings(tmp_path / "recorded", fakes.blink_replies(3, 0))

    def make(mode: ToolOutput) -> ResolvedRun:
        config = RunConfig("blink", ("mllm",), model=f"replay:{recorded}", data=str(data), tool_output=mode)
        return prepare(replace(config, service=ServiceOptions("classical"), out=tmp_path / mode))

    return make


@pytest.mark.parametrize("mode", ["real", "blank", "shuffled", "oracle"])
async def test_no_target_and_no_identity_is_within_reach(plan_of: Any, mode: ToolOutput) -> None:
    plan, spy = plan_of(mode), Spy()
    question = plan.sound[0]
    hidden = replace(question, target=TARGET, protocol={"hidden": HIDDEN}) if mode != "oracle" else question
    await attempt_question(plan.benchmark, plan.resources, spy, hidden)
    plan.service.close()
    assert spy.calls == 1
    texts = [item for item in spy.objects if isinstance(item, str)]
    assert question.text in texts
    ids = [other.id for other in plan.sound]
    assert [text for text in texts if any(part in text for part in (TARGET, HIDDEN, *ids))] == []
    assert [entry for entry in spy.objects if isinstance(entry, Question | AskedQuestion | ResolvedRun)] == []


def test_the_walk_finds_what_is_hidden_in_closures_methods_and_slots() -> None:
    @dataclass(frozen=True, slots=True)
    class Slotted:
        inner: Any

        def method(self) -> Any:
            return self.inner

    def closure(item: Any) -> Any:
        return lambda *, options=item: (item, options)

    for hidden in (Slotted(TARGET), Slotted(TARGET).method, closure(TARGET), [{"key": (closure([TARGET]),)}]):
        assert TARGET in [entry for entry in reachable([hidden]) if isinstance(entry, str)]
