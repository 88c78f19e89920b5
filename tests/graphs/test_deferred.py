"""Packages that LangGraph imports without use: they are initialised only when something in them is used."""

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphs._deferred import DEFERRED, DeferredPackage, defer

PACKAGE = "deferred_sample"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / PACKAGE
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text(f"import {PACKAGE}.inner\nfrom {PACKAGE}.leaf import LEAF\nCOUNT = [LEAF]\n")
    (folder / "leaf.py").write_text("LEAF = 3\n")
    (folder / "inner" / "__init__.py").write_text("INNER = 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def run(code: str) -> list[str]:
    """Return the list that the code leaves in `result`, from a new process."""
    words = [sys.executable, "-c", f"import json, sys\n{code}\nprint('result', json.dumps(result))"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LANGSMITH")}
    output = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
    return list(json.loads(output.rpartition("result ")[2]))


def test_a_submodule_is_imported_without_the_package(package: Path) -> None:
    defer(PACKAGE)
    leaf = __import__(f"{PACKAGE}.leaf", fromlist=["LEAF"])
    assert leaf.LEAF == 3
    module = sys.modules[PACKAGE]
    assert type(module) is DeferredPackage
    assert "COUNT" not in vars(module)
    assert module.COUNT == [3]
    assert type(module) is not DeferredPackage
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = module.missing


def test_the_initialisation_runs_once_if_several_threads_need_it(package: Path) -> None:
    (package / "__init__.py").write_text("import time\ntime.sleep(0.05)\nMADE = object()\n")
    defer(PACKAGE)
    module, made = sys.modules[PACKAGE], []
    threads = [threading.Thread(target=lambda: made.append(module.MADE)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert len(set(map(id, made))) == 1


def test_an_initialisation_that_failed_runs_again(package: Path) -> None:
    defer(PACKAGE)
    module = sys.modules[PACKAGE]
    (package / "leaf.py").rename(package / "away.py")
    with pytest.raises(ImportError):
        _ = module.COUNT
    (package / "away.py").rename(package / "leaf.py")
    importlib.invalidate_caches()
    assert module.COUNT == [3]


def test_a_package_within_a_package_is_an_attribute_of_it(package: Path) -> None:
    defer(PACKAGE, f"{PACKAGE}.inner")
    inner = sys.modules[f"{PACKAGE}.inner"]
    assert sys.modules[PACKAGE].inner is inner
    assert inner.INNER == 4


def test_imported_and_missing_packages_are_left_alone(package: Path) -> None:
    module = __import__(PACKAGE)
    defer(PACKAGE, f"{PACKAGE}.missing", "missing_sample", "missing_sample.inner")
    assert sys.modules[PACKAGE] is module
    assert "missing_sample" not in sys.modules


@pytest.mark.system
def test_a_compiled_graph_imports_no_client_of_a_server() -> None:
    code = (
        "from graphs.controller import SOLVER\nSOLVER.graph.begin().result()\n"
        f"result = [name for name in {[*DEFERRED, 'httpx', 'websockets', 'rich']!r} if name in sys.modules]\n"
        "result = [name for name in result if type(sys.modules[name]).__name__ != 'DeferredPackage']"
    )
    assert run(code) == []


@pytest.mark.system
def test_the_clients_of_servers_can_be_used_afterwards() -> None:
    code = (
        "from graphs.controller import SOLVER\nSOLVER.graph.begin().result()\n"
        "from langgraph_sdk import get_client\nfrom langsmith.types import Run\nimport langsmith\n"
        "from langgraph.pregel.remote import RemoteGraph\n"
        "result = [get_client.__name__, Run.__name__, langsmith.types.Run.__name__, RemoteGraph.__name__]"
    )
    assert run(code) == ["get_client", "Run", "Run", "RemoteGraph"]
