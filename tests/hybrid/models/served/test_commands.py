"""Command lines of servers: parsers by family, arguments passed through, and refusals."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ModelSettings, RunConfig
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.models import open_model
from hybrid.models.served.commands import _families, command_of, parsers_of
from tests.own_servers import write_program


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install stand-ins for all three servers."""
    for name in ("vllm", "sglang", "llama-server"):
        write_program(tmp_path, name)
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("HYBRID_VLLM", "HYBRID_SGLANG", "HYBRID_LLAMACPP"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("model", "tools", "reasoning"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "hermes", ""),
        ("Qwen/Qwen3-VL-8B-Instruct", "hermes", ""),
        ("Qwen/Qwen3-VL-8B-Thinking", "hermes", "qwen3"),
        ("Qwen/Qwen3.5-27B", "qwen3_xml", "qwen3"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_xml", "qwen3"),
        ("zai-org/GLM-4.5V", "glm45", "glm45"),
        ("zai-org/GLM-4.7-Flash", "glm47", "glm45"),
        ("mistralai/Pixtral-12B-2409", "mistral", ""),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", "llama3_json", ""),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4_pythonic", ""),
        ("openai/gpt-oss-20b", "openai", "openai_gptoss"),
        ("some/unknown-7b", "", ""),
    ],
)
def test_parsers_follow_the_family(model: str, tools: str, reasoning: str) -> None:
    parsers = parsers_of("vllm", model)
    assert (parsers.tools, parsers.reasoning) == (tools, reasoning)


def test_a_folder_is_known_by_its_config(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    assert parsers_of("vllm", str(folder)).tools == ""
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2_5_vl"}))
    assert parsers_of("vllm", str(folder)).tools == "hermes"
    assert parsers_of("sglang", str(folder)).tools == "qwen"
    (folder / "config.json").write_text("[1]")
    assert parsers_of("vllm", str(folder)).tools == ""


def test_every_family_names_its_source() -> None:
    for family in _families():
        assert family["source"]
        assert family["checked"].year >= 2026
        assert {"vllm", "sglang"} & family.keys()


def test_command_lines(tmp_path: Path) -> None:
    command = command_of("vllm:Qwen/Qwen2.5-VL-7B-Instruct", {"max_model_len": "8192", "enforce-eager": "on"})
    assert command.words(8001) == [
        str(tmp_path / "vllm"),
        *("serve", "Qwen/Qwen2.5-VL-7B-Instruct", "--served-model-name", "Qwen/Qwen2.5-VL-7B-Instruct"),
        *("--tool-call-parser", "hermes", "--enable-auto-tool-choice", "--max-model-len", "8192", "--enforce-eager"),
        *("--host", "127.0.0.1", "--port", "8001"),
    ]
    words = command_of("sglang:zai-org/GLM-4.6V", {"tool-call-parser": "mine", "disable-x": "off"}).words(1)
    assert words[1:4] == ["serve", "--model-path", "zai-org/GLM-4.6V"]
    assert words[words.index("--tool-call-parser") + 1] == "mine"
    assert words.count("--tool-call-parser") == 1
    assert "--no-disable-x" in words
    weights, projector = tmp_path / "model.gguf", tmp_path / "mmproj-f16.gguf"
    weights.write_bytes(b"GGUF")
    projector.write_bytes(b"GGUF")
    words = command_of(f"llamacpp:{weights}", {}).words(1)
    assert words[1:6] == ["-m", str(weights), "--mmproj", str(projector), "--jinja"]
    assert command_of("llamacpp:ggml-org/x-GGUF:Q4_0", {}).words(1)[1:3] == ["-hf", "ggml-org/x-GGUF:Q4_0"]


def test_an_interpreter_runs_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = write_program(tmp_path, "python3.12")
    monkeypatch.setenv("HYBRID_VLLM", str(python))
    monkeypatch.setenv("HYBRID_SGLANG", str(python))
    words = command_of("vllm:m", {}).words(1)
    assert words[:5] == [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", "m"]
    assert command_of("sglang:m", {}).words(1)[:5] == [str(python), "-m", "sglang.launch_server", "--model-path", "m"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("vllm:", {}, "write vllm: followed by a folder or OWNER/NAME"),
        ("llamacpp:", {}, "FILE.gguf or OWNER/NAME"),
        ("llamacpp:./away.gguf", {}, "file not found"),
        ("vllm:m", {"port": "1"}, "--server-arg port: hybrid sets this argument itself"),
        ("vllm:m", {"--served_model_name": "x"}, "hybrid sets this argument itself"),
        ("vllm:m", {"api-key": "abc"}, "secrets belong in the environment"),
        ("vllm:m", {"a b": "1"}, "is not an argument of vLLM"),
    ],
)
def test_what_is_refused(name: str, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        command_of(name, arguments)


def test_a_missing_program_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(UsageError, match=r"vLLM is not installed .*uv tool install vllm.* HYBRID_VLLM"):
        command_of("vllm:m", {})
    monkeypatch.setenv("HYBRID_VLLM", str(tmp_path / "away"))
    with pytest.raises(UsageError, match=r"HYBRID_VLLM=.*away is not a program"):
        command_of("vllm:m", {})
    monkeypatch.setenv("HYBRID_VLLM", str(tmp_path / "vllm"))
    assert command_of("vllm:m", {}).program == str(tmp_path / "vllm")


def test_the_model_is_opened_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ImageStore(tmp_path / "images")
    settings = ModelSettings(server_args={"dtype": "float32"})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-provider-1")
    model = open_model("vllm:Qwen/Qwen2.5-VL-7B-Instruct", settings, store)
    facts: Any = model.metadata()
    assert facts["model"] == "vllm:Qwen/Qwen2.5-VL-7B-Instruct"
    assert facts["server"]["dtype"] == "float32"
    assert facts["server"]["tool-call-parser"] == "hermes"
    # Neither the port nor the program is part of the identity.
    assert "127.0.0.1" not in json.dumps([facts, model.connection()])
    with pytest.raises(UsageError, match="give --model openai:m"):
        open_model("vllm:m", ModelSettings(base_url="http://127.0.0.1:9/v1"), store)
    with pytest.raises(UsageError, match="begin with vllm: or sglang: or llamacpp:"):
        open_model("openai:m", ModelSettings(base_url="http://127.0.0.1:9/v1", server_args={"a": "1"}), store)
    with pytest.raises(UsageError, match="each worker would start its own server"):
        RunConfig("blink", model="vllm:m", engine="ray")
