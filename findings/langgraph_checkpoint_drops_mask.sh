#!/usr/bin/env bash
# langgraph 1.2.24, langgraph-checkpoint 4.3.2, NumPy 2.4.6.
#
# Expected: a checkpoint restores the state that was saved, or refuses it, as it refuses a NumPy scalar or a PyTorch tensor.
# Happens: a masked array comes back as a plain array. The mask is lost, and the values behind it count as data: a graph
# that is resumed computes another result than the same graph in one run. There is no error and no warning.
# Matters: sensors and stereo matching leave pixels without a depth, which are stored as 0 and masked. After a pause for
# approval or a crash, the nearest point of the scene is at 0 m. The memory saver behaves in the same way, so a test
# that runs the graph without a pause never shows the error.
# Seen on 2026-11-30:
#   nearest valid depth, run in one go: 2.0 m
#   nearest valid depth, paused and resumed: 0.0 m (ndarray)
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langgraph==1.2.24 langgraph-checkpoint==4.3.2 numpy==2.4.6
"$dir/env/bin/python" - <<'PY'
from typing import Any, TypedDict

import numpy as np
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    depth: Any
    nearest: float


def measure(state: State) -> State:
    return {"depth": np.ma.masked_equal(np.array([0.0, 2.0, 30.0]), 0.0)}


def answer(state: State) -> State:
    return {"nearest": float(state["depth"].min())}


graph = StateGraph(State)
graph.add_node("measure", measure)
graph.add_node("answer", answer)
graph.add_edge(START, "measure")
graph.add_edge("measure", "answer")
graph.add_edge("answer", END)

whole = graph.compile(checkpointer=InMemorySaver()).invoke({}, {"configurable": {"thread_id": "whole"}})
paused = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["answer"])
thread = {"configurable": {"thread_id": "paused"}}
paused.invoke({}, thread)
resumed = paused.invoke(None, thread)
print(f"nearest valid depth, run in one go: {whole['nearest']} m")
print(f"nearest valid depth, paused and resumed: {resumed['nearest']} m ({type(resumed['depth']).__name__})")
assert whole["nearest"] == 2.0, "changed: the run without a pause"
assert resumed["nearest"] == 0.0, "changed: the mask survives the checkpoint"
PY
