#!/usr/bin/env bash
# langgraph 1.2.24.
#
# Expected: a node with two incoming edges runs once, when both of its branches have ended. The usual drawing of "ask
# two specialists, then answer" is read in that way.
# Happens: edges that are added one by one make the node run after each super-step in which one of its predecessors ran.
# Branches of equal length hide this. If one branch gets a second node, the answer is given twice, the first time before
# the longer branch has ended. `add_edge([a, b], node)` waits for both.
# Matters: a refinement behind one of two parallel specialists doubles the model calls and lets the model answer without
# the specialist's output. With a reducer that appends, both answers are in the state; with a reducer that replaces,
# only the bill shows the second call.
# Seen on 2026-11-28:
#   equal branches: ['crop', 'depth', 'answer']
#   depth refined, edge by edge: ['crop', 'depth', 'answer', 'refine', 'answer']
#   depth refined, one edge from both: ['crop', 'depth', 'refine', 'answer']
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langgraph==1.2.24
"$dir/env/bin/python" - <<'PY'
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    ran: Annotated[list[str], operator.add]


def nodes_run(*edges):
    """The nodes in the order in which they ran, in a graph of these edges."""
    graph = StateGraph(State)
    names = {name for start, end in edges for name in [*(start if isinstance(start, list) else [start]), end]}
    for name in sorted(names - {START, END}):
        graph.add_node(name, lambda state, name=name: {"ran": [name]})
    for start, end in edges:
        graph.add_edge(start, end)
    return graph.compile().invoke({"ran": []})["ran"]


fork = ((START, "crop"), (START, "depth"))
equal = nodes_run(*fork, ("crop", "answer"), ("depth", "answer"), ("answer", END))
uneven = nodes_run(*fork, ("depth", "refine"), ("crop", "answer"), ("refine", "answer"), ("answer", END))
joined = nodes_run(*fork, ("depth", "refine"), (["crop", "refine"], "answer"), ("answer", END))
print("equal branches:", equal)
print("depth refined, edge by edge:", uneven)
print("depth refined, one edge from both:", joined)
assert equal.count("answer") == 1
assert uneven.count("answer") == 2 and uneven.index("answer") < uneven.index("refine"), "changed: the node waits"
assert joined.count("answer") == 1
PY
