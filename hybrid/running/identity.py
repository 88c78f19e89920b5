"""The identity of a resolved run: its identifying options, with names resolved to hashes and versions.

identity = resolved_identity(config, benchmark, mounted, choice, model, None, None, NOTHING)
"""

from __future__ import annotations

from dataclasses import asdict

from hybrid.benchmarks.base import Benchmark
from hybrid.config import RunConfig, identity_of
from hybrid.core.format_lines import REASONING, Wording
from hybrid.core.types import Json
from hybrid.models import OPENED, ChatModel
from hybrid.plugins.prompt_texts import text_hash
from hybrid.running.data import Mounted, fingerprint
from hybrid.running.generated import VERSION as GENERATOR
from hybrid.running.object_code import is_installed, object_code
from hybrid.running.tools_in_use import ToolChoice
from hybrid.serving.sources import plugin_code_hashes
from hybrid.solving.captions import captions_fact
from hybrid.solving.context import SuppliedTexts
from hybrid.solving.styles import Style
from hybrid.solving.trust import TrustFile
from hybrid.version import __version__


def resolved_identity(
    config: RunConfig,
    benchmark: Benchmark,
    mounted: Mounted,
    choice: ToolChoice,
    model: ChatModel | None,
    captioner: ChatModel | None,
    trust: TrustFile | None,
    context: SuppliedTexts,
    style: Style,
) -> dict[str, Json]:
    """Return the options that are part of the run's identity, with everything that they name resolved."""
    source, wording = mounted.source, Wording(config.sends_format_line, config.reasoning)
    handed_in, code_of_model = config.objects.model, dict[str, Json]()
    if handed_in is not None and not is_installed(type(handed_in)):
        code_of_model = {"code": object_code(type(handed_in))}
    # Generated rows depend only on seed and generator, so a larger sample is the same data.
    read: dict[str, Json] = {"generator": GENERATOR}
    if not mounted.is_sample or "folder" in mounted.origin:
        read = {"sha256": fingerprint(benchmark.files(source), source.folder)}
    facts: dict[str, Json] = {
        "benchmark": benchmark.card.name,
        "split": source.split,
        "tasks": list(source.tasks),
        "settings": dict(source.settings),
        "data": {**mounted.origin, **read},
        "model": {**model.metadata(), **code_of_model} if model else None,
        "prompts": {
            "format_line": wording.format_line,
            "format_lines": wording.sha256,
            "texts": text_hash(benchmark.texts),
            # Included only if chosen, so that earlier runs without the option keep their identity.
            **({"reasoning": REASONING[config.reasoning]} if config.reasoning else {}),
        },
        "limits": asdict(config.limits),
        "trust": trust.sha256 if trust else None,
        "tools_offered": list(choice.tools_offered),
        "tool_style": style.fact,
        "captioner": captions_fact(captioner) if captioner else None,
        "context": {"sha256": context.sha256, "missing": config.context_missing},
    }
    words = (name.partition(":")[0] for name in (config.model, config.captioner) if name is not None)
    plugins = plugin_code_hashes((("hybrid.benchmarks", benchmark.card.name), *((OPENED, word) for word in words)))
    return {
        "hybrid": __version__,
        "pictures": config.service.pictures,
        **identity_of(config, facts),
        # Plug-in tools and solvers are recorded with the tools and solvers.
        **({"plugins": dict(plugins)} if plugins else {}),
    }
