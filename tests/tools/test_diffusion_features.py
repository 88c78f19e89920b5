"""DIFT through diffusers: a small Stable Diffusion in the published layout, as features of semantic correspondence."""

from pathlib import Path

import numpy as np
import pytest

from hybrid.core.errors import ToolError, WeightsError
from hybrid.tool import Evidence, Pixels, Request
from hybrid.tool.networks import collecting
from tests.tools.pictures import picture, scene
from tests.tools.tiny_checkpoints import Checkpoints, started
from tools._shared.dense_features import FeatureMap, feature_map
from tools._shared.diffusers_parts import load_parts
from tools.semantic_correspondence import TOOL, DenseMatch, SemanticArgs
from tools.semantic_correspondence.models import DRAWS, STEP, DiffusionFeatures


@pytest.fixture(scope="module")
def checkpoint(things_checkpoint: Checkpoints) -> Path:
    return things_checkpoint("stable_diffusion")


@pytest.fixture(scope="module")
def features(checkpoint: Path) -> DiffusionFeatures:
    return DiffusionFeatures(str(checkpoint), "cpu")


def map_of(features: DiffusionFeatures, pixels: Pixels, name: str = "", seed: int = 0) -> FeatureMap:
    prepared = features.prepare(pixels, thing=name, seed=seed)
    return feature_map("test", prepared, features.predict([prepared])[0])


def test_features_are_a_map_that_seed_and_thing_decide_and_are_read_as_unit_vectors(features: DiffusionFeatures):
    first, second, other, cat = (
        map_of(features, picture(), text, seed) for text, seed in (("", 0), ("", 0), ("", 1), ("cat", 0))
    )
    # 128 px give 16 latents, and the output of the second upsampling block has half as many rows and columns. Its
    # number of channels is the second last in the network's list of channel numbers.
    assert first.vectors.shape == (8, 8, 32)
    assert first.size == (90, 120)
    assert np.linalg.norm(first.at(50, 40)) == pytest.approx(1, abs=1e-4)
    assert np.array_equal(first.vectors, second.vectors)
    assert not np.allclose(first.vectors, other.vectors, atol=1e-3)
    assert not np.allclose(first.vectors, cat.vectors, atol=1e-3)
    assert features.version.startswith("dift@")
    with pytest.raises(ToolError, match="too elongated"):
        features.prepare(picture(10, 90))


def test_the_cut_network_gives_what_the_whole_one_has_at_this_block(checkpoint: Path, features: DiffusionFeatures):
    """The features are those of the paper: the output of `up_blocks[1]` of the full network at step 261, averaged over
    eight draws."""
    import torch

    parts = load_parts(str(checkpoint), "cpu", pipelines=("StableDiffusionPipeline",), schedulers=("DDIMScheduler",))
    caught = []
    parts.unet.up_blocks[1].register_forward_hook(lambda _module, _inputs, output: caught.append(output))
    pixels = picture(128, 128)
    values = torch.from_numpy(pixels.astype(np.float32).transpose(2, 0, 1))[None] / 127.5 - 1
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        posterior = parts.vae.encode(values).latent_dist
        sample, noise = (torch.randn((DRAWS, 4, 16, 16), generator=generator) for _ in range(2))
        latents = (posterior.mean + posterior.std * sample) * parts.vae.config.scaling_factor
        tokens = parts.tokenizer("a photo of a dog", padding="max_length", return_tensors="pt").input_ids
        words = parts.text_encoder(tokens)[0].repeat(DRAWS, 1, 1)
        noised = parts.scheduler.add_noise(latents, noise, torch.tensor([STEP] * DRAWS))
        parts.unet(noised, STEP, encoder_hidden_states=words)
    expected = caught[0].mean(dim=0).permute(1, 2, 0).numpy()
    assert map_of(features, pixels, "dog", 3).vectors == pytest.approx(expected, abs=1e-4)


def test_every_network_says_once_that_it_was_loaded_and_one_is_given_pictures(checkpoint: Path):
    with collecting() as networks:
        DiffusionFeatures(str(checkpoint), "cpu")
    assert sorted(network.name for network in networks) == [
        f"{checkpoint}/{part}" for part in ("text_encoder", "unet", "vae")
    ]
    assert [network.name for network in networks if network.wants is not None] == [f"{checkpoint}/vae"]


def test_the_layout_of_the_weights_chooses_the_family(checkpoint: Path):
    backend, pixels = started("semantic_correspondence", checkpoint), scene()
    points = [{"x": x, "y": y, "label": "ABC"[place]} for place, (x, y) in enumerate(((100, 20), (30, 40), (100, 80)))]
    args = SemanticArgs(point={"x": 30, "y": 40}, candidates=points, thing=" cat ")

    def ask(seed: int) -> Evidence:
        return backend.run([Request((pixels, pixels), args, seed=seed)])[0]

    first, output = ask(0), ask(0)
    assert first.data == output.data
    assert first.data["best"] == "B"
    assert first.data["candidates"][1]["cosine"] == pytest.approx(1, abs=1e-4)
    assert ask(1).data["candidates"][0]["cosine"] != first.data["candidates"][0]["cosine"]
    assert backend.version.startswith(f"{TOOL.backend('learned').version}+dift@")
    assert "Basis: features of a network" in first.text


def test_another_pipeline_is_refused(things_checkpoint: Checkpoints):
    with pytest.raises(WeightsError, match=r"names 'MarigoldIntrinsicsPipeline'; .*: StableDiffusionPipeline"):
        DenseMatch().setup("cpu", str(things_checkpoint("marigold_iid")))
