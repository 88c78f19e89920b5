"""The page of the solvers, from the docstrings of their files, and the controller's graph as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from _reference.markdown import Page, code, prose, table
from hybrid.plugins.registry import load_solver, solver_docstring, solver_names

OPENING = """# Solvers

All values of `--solver`. The role says how a comparison treats a solver: a `hybrid` solver is compared with the MLLM
alone (`mllm`) and with the specialists alone (`specialist`). How to add one: [a baseline](../add-a-baseline.md),
[a graph](../add-a-graph.md)."""
WIDTH, HEIGHT, ACROSS, DOWN = 110, 36, 150, 90
PLACES = {"__start__": (1, 0), "model": (1, 1), "tools": (0, 1), "__end__": (1, 2)}
"""Column and row of each node of the controller's graph."""


def pages() -> tuple[Page, ...]:
    """The one page."""
    return (Page("reference/solvers.md", "Solvers", "\n\n".join(_sections()) + "\n"),)


def _sections() -> Iterator[str]:
    yield OPENING
    solvers = {name: load_solver(name) for name in solver_names()}
    rows = [
        (f"[{code(name)}](#{name.replace('_', '-')})", solver.role, "yes" if solver.needs_model else "no")
        for name, solver in solvers.items()
    ]
    yield table(("solver", "role", "needs a model"), rows)
    for name in solvers:
        yield f"## {code(name)} {{ #{name.replace('_', '-')} }}"
        yield prose(solver_docstring(name))
        if name == "controller":
            yield graph()


def graph() -> str:
    """Return a drawing of the controller's nodes and edges, made from the graph itself.

    Raises:
        KeyError: the graph has a node that has no place here.
    """
    from graphs.controller import build

    drawn = build().get_graph()
    parts = [_way(edge.source, edge.target) for edge in drawn.edges]
    parts += [_node(name) for name in drawn.nodes]
    title = "The controller's graph: " + ", ".join(f"{edge.source} to {edge.target}" for edge in drawn.edges)
    arrow = (
        '<marker id="arrow" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L10 5L0 10z" fill="currentColor"/></marker>'
    )
    return (
        f'<svg class="graph" viewBox="0 0 360 {2 * DOWN + HEIGHT + 8}" role="img" aria-label="{escape(title)}">'
        f"<defs>{arrow}</defs>{''.join(parts)}</svg>"
    )


def _middle(name: str) -> tuple[float, float]:
    column, row = PLACES[name]
    return 65 + column * ACROSS, 4 + HEIGHT / 2 + row * DOWN


def _node(name: str) -> str:
    x, y = _middle(name)
    round_ = HEIGHT / 2 if name.startswith("__") else 4
    return (
        f'<rect x="{x - WIDTH / 2}" y="{y - HEIGHT / 2}" width="{WIDTH}" height="{HEIGHT}" rx="{round_}" '
        'fill="none" stroke="currentColor"/>'
        f'<text x="{x}" y="{y + 5}" text-anchor="middle" font-size="14" fill="currentColor">{name.strip("_")}</text>'
    )


def _way(source: str, target: str) -> str:
    """Draw an arrow from the edge of one node to the edge of another; two directions are drawn side by side."""
    (x0, y0), (x1, y1) = _middle(source), _middle(target)
    if source == target:
        x = x0 + WIDTH / 2
        path = f"M{x} {y0 - 8}C{x + 50} {y0 - 30} {x + 50} {y0 + 30} {x} {y0 + 8}"
    elif y0 == y1:
        side = 1 if x1 > x0 else -1
        path = f"M{x0 + side * WIDTH / 2} {y0 + side * 7}L{x1 - side * WIDTH / 2} {y0 + side * 7}"
    else:
        down = 1 if y1 > y0 else -1
        path = f"M{x0 - (20 if x1 < x0 else 0)} {y0 + down * HEIGHT / 2}L{x1} {y1 - down * HEIGHT / 2}"
    return f'<path d="{path}" fill="none" stroke="currentColor" marker-end="url(#arrow)"/>'
