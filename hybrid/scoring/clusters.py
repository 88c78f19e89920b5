"""Consistent clusters of questions for all solvers of a comparison.

    solvers = align_clusters(solvers)

Which questions share a picture is known only where pictures are available: they are missing for predictions scored
without the data, and a run with `--limit` knows only its own questions. Two solvers are compared over the same
clusters, so questions that any solver knows to belong together form one cluster for all solvers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.image_clusters import JoinedUnits
from hybrid.core.types import Metric, base_id
from hybrid.scoring.score import Counted, Scored


def align_clusters(solvers: Sequence[Scored]) -> tuple[Scored, ...]:
    """Return the solvers with merged clusters; the same objects if their clusters already agree."""
    # Solvers of one run share their questions, so look at each set of questions once.
    distinct = {id(solver.questions): solver for solver in solvers}.values()
    clusterings = [{score.id: score.cluster for score in solver.scores} for solver in distinct]
    if all(
        clustering.get(name, cluster) == cluster
        for clustering in clusterings
        for other in clusterings
        for name, cluster in other.items()
    ):
        return tuple(solvers)
    joined = JoinedUnits()
    for clusters in clusterings:
        for name, cluster in clusters.items():
            joined.add(base_id(name), [cluster] if cluster else [])
    names: dict[str, str] = {}
    for clusters in clusterings:
        for name, cluster in clusters.items():
            if cluster:
                names.setdefault(joined.root(base_id(name)), cluster)
    aligned = {name: names.get(joined.root(base_id(name)), "") for clusters in clusterings for name in clusters}
    return tuple(_with_clusters(solver, aligned) for solver in solvers)


def _with_clusters(scored: Scored, clusters: Mapping[str, str]) -> Scored:
    if all(clusters.get(score.id, score.cluster) == score.cluster for score in scored.scores):
        return scored

    def relabel(by_rule: Mapping[UnansweredRule, Counted]) -> dict[UnansweredRule, Counted]:
        return {rule: _relabel_counted(counts, clusters) for rule, counts in by_rule.items()}

    return replace(scored, counted=relabel(scored.counted), judged=relabel(scored.judged))


def _relabel_counted(counts: Counted, clusters: Mapping[str, str]) -> Counted:
    scores = tuple(replace(score, cluster=clusters.get(score.id, score.cluster)) for score in counts.scores)
    units = {old.unit: new.unit for old, new in zip(counts.scores, scores, strict=True)}
    return Counted(scores, tuple(_with_units(metric, units) for metric in counts.metrics))


def _with_units(metric: Metric, units: Mapping[str, str]) -> Metric:
    return replace(
        metric, cells=tuple(cell._replace(cluster=units.get(cell.cluster, cell.cluster)) for cell in metric.cells)
    )
