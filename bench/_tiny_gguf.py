"""Convert the checkpoint of `bench._tiny_qwen` for llama.cpp: `python bench/_tiny_gguf.py CHECKPOINT FOLDER`.

Writes `model.gguf` and `mmproj.gguf`. It runs in llama.cpp's environment, and needs gguf and safetensors but no code of
ours.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

Tensors = Mapping[str, "np.ndarray[Any, Any]"]


# The writer's names for the numbers of a config.
NAMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def write(checkpoint: Path, folder: Path) -> None:
    """Write `model.gguf` and `mmproj.gguf`."""
    config = json.loads((checkpoint / "config.json").read_text())
    mapping = {
        name.removeprefix("model."): value for name, value in load_file(checkpoint / "model.safetensors").items()
    }
    sight = {name: value for name, value in mapping.items() if name.startswith("visual.")}
    text = {name.replace("language_model.", "model."): value for name, value in mapping.items() if name not in sight}
    folder.mkdir(parents=True, exist_ok=True)
    _model(config["text_config"], checkpoint, text, folder / "model.gguf")
    _projector(config["vision_config"], config["text_config"]["hidden_size"], sight, folder / "mmproj.gguf")


def _model(config: Mapping[str, Any], checkpoint: Path, tensors: Tensors, to: Path) -> None:
    out = gguf.GGUFWriter(to, "qwen2vl")
    rope = config.get("rope_parameters") or config["rope_scaling"]
    out.add_rope_freq_base(rope.get("rope_theta", 1e6))
    out.add_rope_dimension_sections([*rope["mrope_section"], 0])
    _add(out, NAMES["model"], config)
    data, size = json.loads((checkpoint / "tokenizer.json").read_text()), config["vocab_size"]
    tokens, kinds = [f"[PAD{place}]" for place in range(size)], [gguf.TokenType.UNUSED] * size
    for token, place in data["model"]["vocab"].items():
        tokens[place], kinds[place] = token, gguf.TokenType.NORMAL
    for item in data["added_tokens"]:
        kind = gguf.TokenType.CONTROL if item["special"] else gguf.TokenType.USER_DEFINED
        tokens[item["id"]], kinds[item["id"]] = item["content"], kind
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types(kinds)
    out.add_token_merges([entry if isinstance(entry, str) else " ".join(entry) for entry in data["model"]["merges"]])
    out.add_add_bos_token(False)
    out.add_chat_template((checkpoint / "chat_template.jinja").read_text())
    _finish(out, tensors, gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2VL, config["num_hidden_layers"]))


def _projector(config: Mapping[str, Any], width: int, tensors: Tensors, to: Path) -> None:
    out = gguf.GGUFWriter(to, "clip")
    out.add_type(gguf.GGUFType.MMPROJ)
    out.add_file_type(gguf.LlamaFileType.ALL_F32)
    out.add_clip_has_vision_encoder(True)
    out.add_clip_projector_type(gguf.VisionProjectorType.QWEN25VL)
    out.add_vision_projection_dim(width)
    out.add_vision_image_size(560)
    _add(out, NAMES["projector"], config)
    out.add_vision_attention_layernorm_eps(1e-6)
    out.add_vision_image_mean([0.48145466, 0.4578275, 0.40821073])
    out.add_vision_image_std([0.26862954, 0.26130258, 0.27577711])
    out.add_vision_use_silu(True)
    out.add_vision_n_wa_pattern(config["fullatt_block_indexes"][0] + 1)
    split: dict[str, np.ndarray[Any, Any]] = {}
    for name, value in tensors.items():
        if ".qkv." in name:
            split |= {name.replace("qkv", item): part for item, part in zip("qkv", np.split(value, 3), strict=True)}
        elif "patch_embed.proj" not in name:
            split[name] = value
    patches = tensors["visual.patch_embed.proj.weight"]
    out.add_tensor("v.patch_embd.weight", np.ascontiguousarray(patches[:, :, 0]))
    out.add_tensor("v.patch_embd.weight.1", np.ascontiguousarray(patches[:, :, 1]))
    # The merger's layers, 0 and 2, also count as blocks.
    _finish(out, split, gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, max(3, config["depth"])))


def _add(out: gguf.GGUFWriter, names: Mapping[str, str], config: Mapping[str, Any]) -> None:
    for name, number in names.items():
        getattr(out, f"add_{name}")(config[number])


def _finish(out: gguf.GGUFWriter, tensors: Tensors, names: gguf.TensorNameMap) -> None:
    for name, value in tensors.items():
        text = names.get_name(name, (".weight", ".bias"))
        if text is None:
            raise SystemExit(f"gguf knows no tensor {name}")
        out.add_tensor(text, np.ascontiguousarray(value.astype(np.float32)))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
