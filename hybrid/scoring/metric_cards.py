"""The metrics that any benchmark may have besides its own: of rotations, failures, judges and agreement.

n: questions that were rotated, none of whose rotations failed
source: ours (--rotate)

- rotation.accuracy = right answers / asks, over all rotations of the options [source: ours (--rotate), after the
  circular protocol of MMBench (Liu et al. 2023) and MVP-Bench]
- rotation.consistency = questions whose chosen option, by its words, is the same in every rotation / questions
- rotation.all_correct = questions right in every rotation / questions [source: ours (--rotate), as MVP-Bench's circular
  accuracy]
- rotation.says.<letter> = asks that are answered with the letter / asks, over all rotations: even, where no letter is
  liked
- rotation.excluded_in.<task> (0 to n, in questions) = number of questions of a task that has no rotation [n: all
  questions]
- rotation.excluded (0 to n, in questions) = number of questions without a rotation. Letters are drawn in the picture,
  or the text does not show the options in a known form. [n: all questions]
- with_failed.<metric> (as the metric's) = the metric, every failed question counted as wrong [n: as the metric's, and
  the failed questions; source: ours: the second denominator; printed where a question failed]
- judged.<metric> (as the metric's) = the metric, unreadable replies counted as the judge read them [n: as the metric's;
  source: ours (hybrid score --verdicts), in the place of the judges of BLINK's and MVP-Bench's code]
- agreement = predictions that our parser reads as the authors' extraction did / predictions. Where neither finds an
  answer they agree. [n: predictions with a stored answer; source: ours (hybrid score --field text)]
- undecided = predictions in which our parser reads no answer / predictions [n: predictions; source: ours (hybrid score
  --field text)]

The metrics of a benchmark are on its card; `hybrid benchmarks show NAME` prints those and `FURTHER`.
"""

from __future__ import annotations

from typing import Final

from hybrid.scoring.definitions import definition

FURTHER: Final = definition(__doc__).quantities
