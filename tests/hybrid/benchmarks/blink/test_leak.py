"""No information reserved for scorers reaches a solver."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.blink import BENCHMARK
from hybrid.core.images import ImageStore
from hybrid.core.types import Prompt, Question, Reply
from hybrid.log.codec import codec

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), st.lists, max_leaves=4)


async def prompts_of(question: Question) -> list[bytes]:
    seen: list[Prompt] = []

    async def ask(prompt: Prompt) -> Reply:
        seen.append(prompt)
        return Reply("(A)")

    await BENCHMARK.dialogue(question.without_target(), ask)
    return [codec(Prompt).dump_json(prompt) for prompt in seen]


@settings(max_examples=30)
@given(
    target=JSON,
    task=st.text(max_size=10),
    groups=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    cluster=st.text(max_size=8),
)
async def test_what_the_scorer_knows_leaves_every_prompt_as_it_is(
    tmp_path: Path, fakes: Any, target: Any, task: str, groups: dict[str, str], cluster: str
) -> None:
    question = replace(fakes.question("q1"), images=(fakes.stored(ImageStore(tmp_path / "store"), 1),))
    variant = replace(question, target=target, task=task, groups=groups, cluster=cluster)
    assert await prompts_of(variant) == await prompts_of(question)
    assert (variant.without_target().target, variant.without_target().task, variant.without_target().groups) == (
        None,
        "",
        {},
    )
