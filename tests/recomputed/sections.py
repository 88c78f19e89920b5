"""Every section of the result table, with the function that recomputes its rows."""

from collections.abc import Callable, Iterable, Mapping

from tests.recomputed.pairs import agreement, answered, ceiling, differences, gain, helped, noninferior, questions
from tests.recomputed.review import called, equivalence, headroom, places, pooled, price, selection, used
from tests.recomputed.runs import JsonObject, Runs
from tests.recomputed.solvers import chance, cost, each_metric, models, outcomes, sampling, spread, tasks
from tests.recomputed.study import decomposition, effects, knowledge, tool_only, unchanged
from tests.recomputed.traces import evidence, tool_use

# Rows by section.
RECOMPUTED: Mapping[str, Callable[[Runs], Iterable[JsonObject]]] = {
    "metrics": each_metric,
    **{
        item.__name__: item
        for item in (
            *(models, differences, answered, tasks, questions, helped, noninferior, gain, ceiling, evidence, tool_use),
            *(
                agreement,
                chance,
                spread,
                sampling,
                cost,
                outcomes,
                decomposition,
                tool_only,
                unchanged,
                knowledge,
                effects,
            ),
            *(equivalence, selection, used, headroom, called, pooled, price, places),
        )
    },
}
