"""Metrics that any benchmark may have in addition to its own: rotations, failures, judges and agreement.

n: rotated questions without a failed rotation
source: ours (--rotate)

- rotation.accuracy = right answers / asks, over all rotations of the options [source: ours (--rotate), after the
  circular protocol of MMBench (Liu et al. 2023) and MVP-Bench]
- rotation.consistency = questions with the same chosen option (compared by text) in every rotation / questions
- rotation.all_correct = questions right in every rotation / questions [source: ours (--rotate), as MVP-Bench's circular
  accuracy]
- rotation.says.<letter> = asks that are answered with the letter / asks, over all rotations. Without a bias for a
  letter, all letters have the same share.
- rotation.excluded_in.<task> (0 to n, in questions) = number of questions of a task without rotations [n: all
  questions]
- rotation.excluded (0 to n, in questions) = number of questions without a rotation, because letters are drawn in the
  image or the text does not show the options in a known form. [n: all questions]
- with_failed.<metric> (as the metric's) = the metric, with every failed question counted as wrong [n: as the metric's,
  and the failed questions; source: ours: the second denominator; printed if a question failed]
- judged.<metric> (as the metric's) = the metric, with unreadable replies as the judge read them [n: as the metric's;
  source: ours (hybrid score --verdicts), instead of the judges of BLINK's and MVP-Bench's code]
- agreement = predictions that our parser reads as the authors' extraction did / predictions. If neither finds an
  answer, they agree. [n: predictions with a stored answer; source: ours (hybrid score --field text)]
- undecided = predictions in which our parser reads no answer / predictions [n: predictions; source: ours (hybrid score
  --field text)]

The metrics of a benchmark are on its card; `hybrid benchmarks show NAME` prints those and `FURTHER`.
"""

from __future__ import annotations

from typing import Final

from hybrid.scoring.definitions import definition

FURTHER: Final = definition(__doc__).quantities
