"""Train the embedded model on the conversations in a folder: first its vision, then conversations.

    train(Path("conversations"), Path("checkpoint"), Schedule(steps=2200))

If no tool helps, the model describes the picture before it answers (`sight.py`). In addition, each picture token is
trained to predict the colour, shape and place of the thing that the token shows. All replies of the assistant are
learnt, calls and answers, from the same tokens as at inference.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from training.architecture import IMAGE_TOKENS, processor_of, untrained
from training.curriculum import draw_batches
from training.lessons import Lesson, Lessons, rows, tokenizer_of
from training.pictures import Eyes, Pictures
from training.sight import SHAPES

LOG: Final = logging.getLogger(__name__)
# Weight of the loss of picture parts, relative to 1 for texts.
PARTS_WEIGHT: Final = 0.5
# Number of pictures in a vision step.
SEEN_AT_ONCE: Final = 48
# Number of steps between two checkpoints.
KEPT_STEPS: Final = 200


@dataclass(frozen=True)
class Schedule:
    """Length of the training; `tokens` is the size of a batch, pictures included.

    `seeing` steps with only pictures come before the others.
    """

    steps: int
    seeing: int = 900
    tokens: int = 3500
    seed: int = 0


def loss_of(model: Any, batch: Sequence[Lesson], pictures: Pictures, lessons: Lessons) -> tuple[Any, Any]:
    """Return the weighted mean cross-entropy of a batch: assistant tokens, and labels of picture parts."""
    import torch

    longest = max(len(item.ids) for item in batch)
    ids = torch.full((len(batch), longest), lessons.words.pad_token_id)
    weights = torch.zeros((len(batch), longest))
    mask = torch.zeros((len(batch), longest), dtype=torch.long)
    for place, entry in enumerate(batch):
        ids[place, : len(entry.ids)] = torch.from_numpy(entry.ids).long()
        weights[place, : len(entry.ids)] = torch.from_numpy(entry.weights)
        mask[place, : len(entry.ids)] = 1
    names = [name for value in batch for name in value.pictures]
    model_inputs = {"input_ids": ids, "attention_mask": mask, "use_cache": False}
    if names:
        model_inputs["pixel_values"] = pictures.batch(names)
    output = model.model(**model_inputs)
    expected = weights[:, 1:] > 0
    logits = model.lm_head(output.last_hidden_state[:, :-1][expected])
    losses = torch.nn.functional.cross_entropy(logits, ids[:, 1:][expected], reduction="none")
    loss = (losses * weights[:, 1:][expected]).sum() / weights[:, 1:][expected].sum()
    # Loss of the picture tokens; 0 if no picture of the batch has labels.
    places, parts = to_read(batch, lessons)
    if not parts:
        return loss, torch.zeros(())
    # One tensor per picture, (tokens, width).
    return loss, _misread(model, torch.cat(list(output.image_outputs.pooler_output))[places], parts)


def to_read(batch: Sequence[Lesson], lessons: Lessons) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return the positions of the labelled picture tokens in a batch, and their labels."""
    places: list[int] = []
    pairs: list[tuple[int, ...]] = []
    start = 0
    for item in batch:
        for name in item.pictures:
            if item.view is not None and item.view in SHAPES:
                pairs += lessons.read_as(name, item.view)
                places += range(start, start + IMAGE_TOKENS)
            start += IMAGE_TOKENS
    return places, pairs


def _misread(model: Any, features: Any, pairs: Sequence[tuple[int, ...]]) -> Any:
    """Return the cross-entropy of picture tokens, passed through the decoder's output layer, against their labels."""
    import torch

    logits = model.lm_head(model.model.language_model.norm(features))
    targets = torch.tensor(pairs)
    losses = [torch.nn.functional.cross_entropy(logits, column) for column in targets.T]
    return sum(losses) / len(losses)


def see(model: Any, lessons: Lessons, pictures: Pictures, schedule: Schedule) -> None:
    """Train the vision tower and its projector on the labels of picture parts."""
    import torch

    from training.optimiser import Optimiser

    rng = random.Random(f"see/{schedule.seed}")
    text = lessons.scenes()
    seeing = [(name, parameter) for name, parameter in model.named_parameters() if "language_model" not in name]
    optimiser = Optimiser(seeing, schedule.seeing)
    losses: list[float] = []
    for step in range(1, schedule.seeing + 1 if text else 1):
        selected = rng.choices(text, k=SEEN_AT_ONCE)
        features = model.model.get_image_features(pixel_values=pictures.batch([name for name, _ in selected]))
        reads = [read for name, view in selected for read in lessons.read_as(name, view)]
        loss = _misread(model, torch.cat(list(features.pooler_output)), reads)
        optimiser.step(loss)
        losses.append(loss.item())
        if step % 50 == 0:
            LOG.info("seeing, step %d of %d, loss %.3f", step, schedule.seeing, sum(losses[-50:]) / 50)


def learn(
    model: Any, lessons: Lessons, pictures: Pictures, schedule: Schedule, save: Callable[[], None]
) -> list[float]:
    """Train; return the loss of every step.

    `save` is called every `KEPT_STEPS` steps, so that an interrupted training leaves a checkpoint.
    """
    from training.optimiser import Optimiser

    optimiser = Optimiser(list(model.named_parameters()), schedule.steps)
    model.train()
    losses: list[float] = []
    of_parts: list[float] = []
    for step, batch in enumerate(draw_batches(lessons, schedule.steps, schedule.tokens, schedule.seed), 1):
        loss, parts = loss_of(model, batch, pictures, lessons)
        optimiser.step(loss + PARTS_WEIGHT * parts)
        losses.append(loss.item())
        of_parts.append(parts.item())
        if step % KEPT_STEPS == 0:
            save()
        if step % 50 == 0:
            recent = sum(losses[-50:]) / 50
            LOG.info("step %d of %d, loss %.3f, of parts %.3f", step, schedule.steps, recent, sum(of_parts[-50:]) / 50)
    model.eval()
    return losses


def train(folder: Path, out: Path, schedule: Schedule) -> list[float]:
    """Train tokenizer and network on a folder's conversations; write a checkpoint and return the loss of every step."""
    conversations = rows(folder)
    eyes = Eyes(folder)
    words = tokenizer_of(conversations, eyes)
    processor = processor_of(words)
    model = untrained(words, schedule.seed)
    lessons = Lessons(conversations, words, eyes, schedule.seed)

    def save() -> None:
        model.save_pretrained(out)
        processor.save_pretrained(out)

    pictures = Pictures(folder, processor)
    see(model, lessons, pictures, schedule)
    losses = learn(model, lessons, pictures, schedule, save)
    save()
    return losses
