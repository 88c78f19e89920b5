"""The marks of generated questions, whose scores are never a benchmark result.

Ids of generated questions begin with `ID_PREFIX`, whichever benchmark reads them, so that no table, log or export of
them passes for one of the benchmark's own questions.
"""

from typing import Final

# The split that exports name, and the word that stands behind the name of a data set.
GENERATED: Final = "generated"
ID_PREFIX: Final = f"{GENERATED}_"
# Lies in a folder of generated data, which is read as such also where it is given as `--data DIR`.
MARKER: Final = "GENERATED.json"
