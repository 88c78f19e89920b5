"""The marks of generated questions, whose scores are never a benchmark result.

Ids of generated questions start with `ID_PREFIX` in every benchmark, so that no table, log or export can be mistaken
for one of the benchmark's own questions.
"""

from typing import Final

# Name of the split in exports, and the suffix of the data set's name.
GENERATED: Final = "generated"
ID_PREFIX: Final = f"{GENERATED}_"
# Marker file in a folder of generated data, so that `--data DIR` recognizes it.
MARKER: Final = "GENERATED.json"
