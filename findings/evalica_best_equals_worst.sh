#!/usr/bin/env bash
# evalica 0.4.2
#
# Expected: if one of three models wins every comparison and another loses every comparison, `bradley_terry` and
# `newman` give the winner the highest score, or say that no finite score exists.
# Happens: `bradley_terry` gives all three models the same score, 1e-06, and `newman` gives it to the winner and the
# loser, without a warning. As long as one model never loses, the order of the others is lost too. `elo`, `pagerank` and
# `average_win_rate` of the same package keep the order.
# Matters: a leaderboard of pairwise judgments shows the model that never lost at the same level as the model that never
# won.
# Seen on 2026-11-30 (A beats B, B beats C, A beats C, four times each; then the same with one win of C over B):
#   bradley_terry: {'A': 1e-06, 'B': 1e-06, 'C': 1e-06}
#   newman: {'A': 1e-06, 'B': 0.0, 'C': 1e-06}
#   elo: {'A': 1015.546587, 'B': 1000.001026, 'C': 984.452387}
#   average_win_rate: {'A': 1.0, 'B': 0.5, 'C': 0.0}
#   bradley_terry: {'A': 1e-06, 'B': 1e-06, 'C': 1e-06}
#   newman: {'A': 1e-06, 'B': 1e-06, 'C': 1e-06}
#   elo: {'A': 1015.546587, 'B': 996.001026, 'C': 988.452387}
#   average_win_rate: {'A': 1.0, 'B': 0.375, 'C': 0.125}
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" evalica==0.4.2
"$dir/env/bin/python" -W ignore - <<'PY'
import evalica
from evalica import Winner

LEFT, RIGHT = ["A", "A", "B"] * 4, ["B", "C", "C"] * 4


def scores(method, last):
    winners = [Winner.X] * 11 + [last]
    result = getattr(evalica, method)(LEFT, RIGHT, winners).scores.to_dict()
    return {model: round(float(result[model]), 6) for model in "ABC"}


for last in (Winner.X, Winner.Y):
    for method in ("bradley_terry", "newman", "elo", "average_win_rate"):
        print(f"{method}: {scores(method, last)}")
for last in (Winner.X, Winner.Y):
    assert len(set(scores("bradley_terry", last).values())) == 1, "changed: bradley_terry"
    assert scores("newman", last)["A"] == scores("newman", last)["C"], "changed: newman"
    assert scores("elo", last)["A"] > scores("elo", last)["B"] > scores("elo", last)["C"], "changed: elo"
PY
