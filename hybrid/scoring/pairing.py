"""Checks whether two solvers were asked the same questions, so that they may be compared.

An id alone proves nothing: `val_Jigsaw_1` exists in BLINK val and among generated questions. Questions pair by id
if both solvers were given the same data (its fingerprint in the manifest), or if everything known on both sides about
each question is equal: text, choices, images, target.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hybrid.core.errors import UsageError
from hybrid.core.generated_mark import GENERATED
from hybrid.core.types import BrokenQuestion, Json, Question
from hybrid.log.lines import Records

Questions = Mapping[str, Question | BrokenQuestion]

# Number of printed digits of a fingerprint, enough to tell two fingerprints apart.
SHOWN_SHA256 = 12


@dataclass(frozen=True)
class Data:
    """The source of a solver's questions, as recorded in its run's manifest."""

    benchmark: str
    split: str
    # Kind, seed, revision and sha256 of the files; empty for predictions without their questions.
    facts: Mapping[str, Json]
    settings: Mapping[str, str]

    @property
    def generated(self) -> bool:
        """Whether the questions were generated."""
        return self.facts.get("kind") == "sample"

    @property
    def name(self) -> str:
        """Name of the data set in tables and other tools' files: the benchmark's name, marked if generated."""
        return f"{self.benchmark}_{GENERATED}" if self.generated else self.benchmark

    @property
    def named_split(self) -> str:
        """Name of the split in tables and other tools' files: `generated` for generated questions."""
        return GENERATED if self.generated else self.split

    def __str__(self) -> str:
        """Return, for example, `blink val, folder, sha256 4ccd46bb3f5f`."""
        facts = [
            str(value) if key == "kind" else f"{key} {str(value)[:SHOWN_SHA256] if key == 'sha256' else value}"
            for key, value in self.facts.items()
        ]
        return ", ".join([f"{self.benchmark} {self.split}", *(facts or ["predictions without their questions"])])


def check_same(
    name_a: str, a: tuple[Data, Questions], name_b: str, b: tuple[Data, Questions], relabelled: Collection[str] = ()
) -> None:
    """Raise `UsageError`, with both fingerprints, if two solvers answered different questions under one id.

    For the same data, the images of questions with equal ids must have equal sha256. If the settings that determine the
    images differ, equal ids suffice. Questions of tasks in `relabelled` may differ in their target.
    """
    (data_a, of_a), (data_b, of_b) = a, b
    sources = f"{name_a}: {data_a}\n  {name_b}: {data_b}"
    if data_a.benchmark != data_b.benchmark:
        raise UsageError(
            f"two benchmarks cannot be compared:\n  {sources}\nname runs of one of them; `hybrid report` takes both"
        )
    # Whether both solvers are known to have been given the same data.
    same = bool(data_a.facts) and (data_a.split, data_a.facts) == (data_b.split, data_b.facts)
    if of_a is of_b or (same and data_a.settings != data_b.settings):
        return
    shared = [identity for identity in of_a if identity in of_b]
    strict, different = data_a.generated != data_b.generated, {}
    for identity in shared:
        # Lines with equal bytes need no parsing.
        if isinstance(of_a, Records) and isinstance(of_b, Records) and of_a.line(identity) == of_b.line(identity):
            continue
        question, other = of_a[identity], of_b[identity]
        part = None if same else find_mismatch(question, other, strict=strict)
        # The fingerprint covers the tables; pictures in separate files may have changed.
        if same and isinstance(question, Question) and isinstance(other, Question) and question.images != other.images:
            part = "images"
        if part and not (part == "target" and question.task in relabelled):
            different[identity] = part
    if different:
        identity, part = next(iter(different.items()))
        raise UsageError(
            f"these are different questions under the same ids, which cannot be compared:\n  {sources}\n"
            f"  {len(different)} of the {len(shared)} ids that both have differ; {identity} differs in {part}"
        )


def find_mismatch(a: Question | BrokenQuestion, b: Question | BrokenQuestion, *, strict: bool = False) -> str | None:
    """Return the first field in which two questions of one id differ, among the fields known for both; else None.

    Predictions may lack their questions' texts and images; then the number of choices and the target decide. Harnesses
    save a part of the text, so one text may contain the other. `strict` requires the images of both, because targets
    and texts may agree by chance.
    """
    if isinstance(a, BrokenQuestion) or isinstance(b, BrokenQuestion):
        return None if a.task == b.task else "task"
    images_a, images_b = ([image.sha256 for image in question.images] for question in (a, b))
    text_a, text_b = (" ".join(question.text.split()).casefold() for question in (a, b))
    texts = bool(text_a and text_b)
    checks = {
        "task": a.task == b.task,
        "target": None in (a.target, b.target) or a.target == b.target,
        "number of choices": not (a.choices and b.choices) or len(a.choices) == len(b.choices),
        "choices": not (texts and any(a.choices) and any(b.choices)) or a.choices == b.choices,
        "text": not texts or text_a in text_b or text_b in text_a,
        "images": not (images_a and images_b) or images_a == images_b,
        "images, which are unknown on one side": not strict or bool(images_a and images_b),
    }
    return next((part for part, same in checks.items() if not same), None)
