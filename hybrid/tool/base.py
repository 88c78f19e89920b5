"""The interface of a specialist tool: a card, typed arguments, and backends that turn requests into evidence.

A module `tools.NAME` holds one `TOOL = Tool(...)`; see `tools/jigsaw/` for the shortest complete one. A backend gets
decoded images and returns `Evidence`; the service adds backend and version, stores pictures and makes the evidence a
`Finding`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from hybrid.core.coordinates import Place, unmarked
from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Fault, Finding, Json, Pixels
from hybrid.tool.networks import Network
from hybrid.tool.rules import Rule

if TYPE_CHECKING:
    from hybrid.tool.args import Args

BackendName = Literal["learned", "classical"]

A_co = TypeVar("A_co", bound="Args", covariant=True)


@dataclass(frozen=True)
class Request(Generic[A_co]):
    """One call. `needs` has the outputs of the tools that this tool names in its card, by tool name."""

    images: tuple[Pixels, ...]
    args: A_co
    # For each needed tool, one finding per image, in the order of `images`.
    needs: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True)
class Picture:
    """A picture that a tool made: an overlay of the same size as input `of` or, with `box`, a derived image.

    `of` counts inputs from 0; `box` is in pixels of that input; `scale` is the number of pixels of this picture per
    pixel of that input. An overlay given as a function is drawn only if a model or a person looks at it.
    """

    made: Pixels | Callable[[], Pixels]
    of: int = 0
    box: Box | None = None
    scale: float = 1.0

    @cached_property
    def pixels(self) -> Pixels:
        """Return the image, shape (H, W, 3), values 0..255; it is drawn now if a function was given."""
        return self.made() if callable(self.made) else self.made


@dataclass(frozen=True)
class Evidence:
    """The answer of a backend to one request: see `hybrid.core.types.Finding` for the fields.

    Numbers in `text` that belong to a picture are marked (`hybrid.core.coordinates`), because a model may use another
    frame of coordinates.
    """

    text: str
    data: Mapping[str, Json]
    confidence: float
    pictures: tuple[Picture, ...] = ()
    # The coordinates that are marked in the text.
    places: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        text, places = unmarked(self.text) if isinstance(self.text, str) else (self.text, ())
        if places:
            object.__setattr__(self, "text", text)
            object.__setattr__(self, "places", places)


A_contra = TypeVar("A_contra", bound="Args", contravariant=True)


class Backend(Protocol[A_contra]):
    """One way to answer: the constructor does no work, `setup` loads weights once, and a worker thread calls `run`."""

    def setup(self, device: str, weights: str | None) -> None:
        """Load what is needed onto `device` from `weights` (a directory or hub id). Raises `WeightsError`."""

    def run(self, requests: Sequence[Request[A_contra]]) -> list[Evidence]:
        """Return one evidence per request, in order. Raises `ToolError` if a request cannot be answered."""


A = TypeVar("A", bound="Args")
P = TypeVar("P")
R = TypeVar("R")


class Stages(ABC, Generic[A, P, R]):
    """A backend in three stages, so that the device computes one batch while other batches are prepared and drawn.

    `prepare` and `finish` need no device and change nothing in the backend: they run in any thread, several at once.
    `compute` runs the network over a batch, in the thread of the device, and does nothing else.
    """

    @abstractmethod
    def setup(self, device: str, weights: str | None) -> None:
        """See `Backend.setup`."""

    @property
    def networks(self) -> Sequence[Network]:
        """The networks that `setup` has loaded, for checks of weights; none for a backend without any."""
        return ()

    @abstractmethod
    def prepare(self, request: Request[A]) -> P:
        """Return the input of the network, in host memory. Raises `ToolError` for a request that cannot be answered."""

    def batch_key(self, prepared: P) -> Hashable:
        """Return a key that is equal for inputs that fit into one pass, such as a tensor's shape; None by default."""
        del prepared
        return None

    @abstractmethod
    def compute(self, prepared: Sequence[P]) -> list[R]:
        """Return one output per request, in order, in host memory, with as few forward passes as their shapes allow."""

    @abstractmethod
    def finish(self, request: Request[A], prepared: P, output: R) -> Evidence:
        """Return the evidence of one request. Raises `ToolError` if there is no output."""

    def run(self, requests: Sequence[Request[A]]) -> list[Evidence]:
        """Return one evidence per request, in order. Raises `ToolError` as the stages do."""
        prepared = [self.prepare(request) for request in requests]
        outputs = self.compute(prepared) if prepared else []
        return [self.finish(*item) for item in zip(requests, prepared, outputs, strict=True)]


@dataclass(frozen=True)
class Bin:
    """How often a tool was right when its confidence was at least `confidence` (and below the next bin's)."""

    confidence: float
    right: int
    n: int


# Maps a tool's name to one output per image.
Found = Mapping[str, tuple[Finding, ...]]


@dataclass(frozen=True)
class Need:
    """Another tool that is called first on every image, and the arguments of that call.

    `args` derives them from the caller's arguments; None means that this call does not need the other tool. `given`
    does the same, but also gets the outputs of the needs before this one; if it is set, it replaces `args`.
    """

    tool: str
    args: Callable[[Any], Mapping[str, Json] | None]
    given: Callable[[Any, Found], Mapping[str, Json] | None] | None = None


@dataclass(frozen=True)
class Provenance:
    """Licence and training data of one set of published weights; another size of the same network is another set."""

    # The hub id, or the Python package that contains them.
    weights: str
    licence: str
    # Collections of images, as `hybrid.running.permissions` names them; empty if they were not published.
    trained_on: tuple[str, ...]
    non_commercial: bool = False


@dataclass(frozen=True)
class ReducedPrecision:
    """How the answers of a learned backend differ from those in float32 when its network computes in fewer bits.

    Measured on the tool's own generated questions (`bench/tools.py --dtypes`). A decision is any part of an output's
    `data` that is not a measured number: words, truth values, chosen indices, lengths of lists.
    """

    dtype: Literal["bfloat16", "float16"]
    # Questions with a changed decision, out of `questions`.
    changed: int
    questions: int
    # The largest difference of a measured number in `data`, in its own unit, if no decision changed.
    largest: float
    # The field of `data` with that difference.
    of: str
    # The measured weights, as named in `Provenance.weights`, if they were trained.
    weights: str
    # Whether the weights were trained. Decisions of random weights say little about those of trained weights.
    trained: bool = False
    device: str = "cpu"
    # The largest difference of that number that has no consequences.
    tolerated: float = 0.0

    @property
    def harmless(self) -> bool:
        """Return whether trained weights changed no decision, and numbers only within the tolerance.

        If so, `--tool-dtype auto` uses this precision on CUDA with these weights.
        """
        return self.trained and self.questions > 0 and self.changed == 0 and self.largest <= self.tolerated


class _Tuples:
    """Checks that every tuple field is a tuple, to report a forgotten comma in `(VALUE,)` where it happened."""

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if str(item.type).startswith("tuple[") and not isinstance(value, tuple):
                raise TypeError(
                    f"{item.name} must be a tuple, not a {type(value).__name__}: write one value as (VALUE,)"
                )


@dataclass(frozen=True)
class BackendCard(_Tuples):
    """Facts about one backend that a user must know before trusting it."""

    name: BackendName
    version: str
    make: Callable[[], Backend[Any]]
    summary: str
    # Default hub id; None if nothing is loaded.
    weights: str | None = None
    # Weights with known licence and training data, including the default ones; all others count as unknown.
    provenances: tuple[Provenance, ...] = ()
    # How often answers of each confidence were right; the arbiter uses these shares without `--trust`.
    reliability: tuple[Bin, ...] = ()
    batch: int = 1
    # Largest difference of a number in `data` between a batched and a single run.
    learned_tolerance: float = 0.0
    # Tools that only this backend needs, besides those of the card. A learned backend without its own weights works if
    # the tools that it needs have their weights.
    needs: tuple[Need, ...] = ()
    # Python package that contains weights for this backend; they are used if no weights are named and the package is
    # installed.
    package: str | None = None
    # Import name of the package that a weight-free backend requires.
    library: str | None = None
    # Measured changes of answers in fewer bits than float32.
    reduced: tuple[ReducedPrecision, ...] = ()
    # The pictures on which `reliability` was measured, never those of a benchmark, and the command that measures it.
    counted_on: str = ""


@dataclass(frozen=True)
class Card(_Tuples):
    """The card of a tool: `summary` and `limits` for a model, the rest (backends, licences, measurements) for a person.

    A model reads what the tool does and where it fails, but no benchmark name and no measurement.
    """

    name: str
    summary: str
    limits: str
    backends: tuple[BackendCard, ...]
    # Fewest and most images of one call.
    images: tuple[int, int] = (1, 1)
    needs: tuple[Need, ...] = ()
    # Measurements, their data, and their gaps, for people: `hybrid tools show` prints them, but no model reads them.
    measured: str = ""
    # Whether the answer depends on `Request.seed`. If not, calls with different seeds share one cache entry.
    uses_seed: bool = True

    def backend(self, name: BackendName) -> BackendCard | None:
        """Return the backend of that name, or None if the tool has none."""
        return next((card for card in self.backends if card.name == name), None)


@dataclass(frozen=True)
class CheckCase:
    """A known answer: images, arguments, and a check that returns what is wrong with the evidence (None if right).

    The arguments and `needs` are complete: no other tool is asked first.
    """

    images: tuple[Pixels, ...]
    args: Mapping[str, Json]
    wrong: Callable[[Evidence], str | None]
    # Returns the error in an output of `Stages.compute`, or None. For a backend with stages it is called before
    # `wrong`: an answer may be right although much of the output behind it is wrong.
    output: Callable[[Any], str | None] | None = None
    # See `Request`.
    needs: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckSeries:
    """Known answers of one kind that count together: a sound backend gives at least `least` of them.

    With several known answers, success by chance is rare, and real weights may still err on a drawn picture.
    """

    name: str
    least: int


@dataclass(frozen=True)
class KnownAnswer:
    """One check of loaded weights, run on request.

    A sound backend must pass it, and a backend with a flipped sign must fail it. A check that belongs to a `series` may
    fail as long as enough others of that series are right.
    """

    name: str
    pose: Callable[[], CheckCase]
    series: CheckSeries | None = None


@dataclass(frozen=True)
class Claims(_Tuples):
    """The claims of a tool about its images, and how to ask the tool a question that its images do not answer.

    `hybrid tools check` asks such questions (`hybrid/serving/empty_questions.py`).
    """

    # Fields of `data` that are null, false or empty if the pictures do not determine an answer. A tool without such
    # fields states nothing that a picture could fail to show, so the check does not call it.
    fields: tuple[str, ...]
    # The argument that lists the points or boxes to compare. If all of them have the same position, there is no answer.
    compares: str | None = None
    # Whether there is no answer if all pictures are the same.
    same_pictures: bool = False
    # Makes the question, with pictures of (height, width) px from the given function. If None, the question is the
    # first known answer with its pictures replaced, or a call without arguments.
    pose: Callable[[Callable[[int, int], Pixels]], CheckCase] | None = None


def _is_phrase(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip()) and not any(map(str.isdigit, text))


@dataclass(frozen=True)
class Tool(_Tuples):
    """A specialist: the card, the type of its arguments, and images with known answers to check new weights."""

    card: Card
    args: type[Args]
    checks: tuple[KnownAnswer, ...] = ()
    # Makes a question in which every network gets the given picture (H, W, 3) or large parts of it; the picture is at
    # least 400 px a side. The actual input of each network is then compared with the expected input. If None, the known
    # answers are used with the picture in place of every image; without known answers, the tool is called on the
    # picture without arguments.
    probe: Callable[[Pixels], CheckCase] | None = None
    # Claims of an output; if None, any output with a confidence above a half is a claim.
    claims: Claims | None = None
    # Rules that answer questions without an MLLM, by route of the question.
    rules: Mapping[str, Rule] = field(default_factory=dict, hash=False)
    # JSON schema of the `data` of its outputs (`hybrid.tool.outputs.schema_of`); None if it declares none.
    output: Mapping[str, Json] | None = field(default=None, hash=False)
    # A second fixed wording of its texts: phrases without digits, each with its replacement
    # (`hybrid/solving/paraphrase.py`). Without a second wording the tool cannot be offered with `--tool-output
    # paraphrased`.
    wording: tuple[tuple[str, str], ...] = ()
    # The kind of gaze prediction, for `hybrid tools measure`. `map`: its backends have `predict_map(request)`, which
    # returns a saliency map (h, w) of the first image. `path`: its data have the lists `x_0_1`, `y_0_1` and `t_ms`.
    gaze: Literal["", "map", "path"] = ""
    # The hash of its code if only another process imported it (`hybrid/serving/described.py`): the tool can be
    # described and called by name, but its functions cannot be called in this process.
    code: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for pair in self.wording:
            if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(map(_is_phrase, pair)):
                raise TypeError(f'wording: {pair!r:.80}: write ("phrase", "other phrase"), two texts without digits')

    def backend(self, name: BackendName) -> BackendCard | None:
        """Return the backend of that name, or None if the tool has none."""
        return self.card.backend(name)

    @property
    def looked_into(self) -> bool:
        """Return whether weights must pass known answers before their first use with this `HYBRID_HOME`."""
        return bool(self.checks)

    def parse(self, args: Mapping[str, Json]) -> Args:
        """Return typed arguments. Raises `ToolError` that says, for each wrong argument, what was expected."""
        from pydantic import ValidationError

        try:
            return self.args.model_validate(dict(args))
        except ValidationError as error:
            wrong = "; ".join(
                f"{'.'.join(str(place) for place in item['loc']) or 'arguments'}: {item['msg']}"
                for item in error.errors()
            )
            raise ToolError(f"wrong arguments for {self.card.name}: {wrong}"[:500], Fault.BAD_ARGUMENTS) from error


def json_of_args(args: Mapping[str, Json] | Args) -> dict[str, Json]:
    """Return arguments as JSON, as they are recorded; fields that are None and have None as default are left out.

    A null that replaces another default stays, so a tool that parses the result gets the same arguments.
    """
    return dict(args) if isinstance(args, Mapping) else _as_recorded(args, args.model_dump(mode="json"))


def _as_recorded(value: object, dumped: Any) -> Any:
    """Return the JSON form of a value without the fields, at any depth, that are None and have None as default."""
    from pydantic import BaseModel

    if isinstance(dumped, dict) and isinstance(value, BaseModel):
        declared = type(value).model_fields
        return {
            key: _as_recorded(getattr(value, key, None), item)
            for key, item in dumped.items()
            if item is not None or (key in declared and declared[key].default is not None)
        }
    if isinstance(dumped, dict) and isinstance(value, Mapping) and len(dumped) == len(value):
        pairs = zip(value.values(), dumped.items(), strict=True)
        return {key: _as_recorded(inner, item) for inner, (key, item) in pairs}
    if isinstance(dumped, list) and isinstance(value, list | tuple) and len(dumped) == len(value):
        return [_as_recorded(inner, item) for inner, item in zip(value, dumped, strict=True)]
    return dumped
