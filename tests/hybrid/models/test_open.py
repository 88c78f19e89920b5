import subprocess
import sys
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.models import open_model
from tests.tables import cases

# Programs that the tests write or start.
TEXT = {
    "nothing_heavy_is_imported_for_opening": """import sys, pathlib
from hybrid.core.images import ImageStore
from hybrid.models import ModelSettings, open_model
store = ImageStore(pathlib.Path('unused'))
for name in ('openai:m', 'anthropic:m', 'google_genai:m', 'ollama:m'):
    open_model(name, ModelSettings(base_url='http://127.0.0.1:9'), store).metadata()
open_model('embedded', ModelSettings(), store)
open_model('hf:owner/name', ModelSettings(), store)
heavy = {'torch', 'transformers', 'langchain', 'langchain_core', 'openai', 'anthropic', 'PIL'}
print(sorted(heavy & set(sys.modules)))
""",
}


@pytest.mark.parametrize(*cases(__file__, "test_a_name_that_means_nothing_is_refused"))
def test_a_name_that_means_nothing_is_refused(name: str, message: str, store: ImageStore) -> None:
    with pytest.raises(UsageError, match=message):
        open_model(name, ModelSettings(), store)


@pytest.mark.parametrize(*cases(__file__, "test_an_option_without_effect_is_refused"))
def test_an_option_without_effect_is_refused(settings: dict[str, Any], message: str, store: ImageStore) -> None:
    with pytest.raises(UsageError, match=f"{message}.*'replay' has no such option"):
        open_model("replay:nowhere", ModelSettings(**settings), store)


@pytest.mark.system
def test_nothing_heavy_is_imported_for_opening_a_model() -> None:
    code = TEXT["nothing_heavy_is_imported_for_opening"]
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
