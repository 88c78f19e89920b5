"""The submission file for a benchmark's own server, for a split with hidden answers.

hybrid export RUN/mllm --to submission -o blink-test.json
"""

from __future__ import annotations

from pathlib import Path

from hybrid.core.errors import UsageError
from hybrid.core.files import write_atomic
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.scoring.runs import write_submission


class Submission(Exporter):
    """One file in the benchmark's own format."""

    form = "submission"
    takes = ("allow",)
    about = "the file that the benchmark's server accepts for a split with hidden answers; one solver"

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`."""
        card = run.benchmark.card
        run.refuse_generated(self.form, options)
        if run.split not in card.hidden_splits:
            hidden = ", ".join(map(repr, card.hidden_splits))
            raise UsageError(
                f"submission: the answers of the split {run.split!r} of {card.name} are public, so there is nothing "
                "to submit: `hybrid score` scores it"
                + (f"; the answers of the split {hidden} are hidden" if hidden else "")
            )
        file = write_submission(run.folder, run.only(self.form))
        write_atomic(path, file.read_bytes())
        return Written((path,))


EXPORTER = Submission()
