"""Each source file of the project is checked for calls and imports that could execute data as code.

The checks parse the source and look for the calls and imports themselves (unpickling, `eval`, YAML objects, shells,
code from checkpoints), so a new file that contains one fails whatever its name is.
"""

import ast
from pathlib import Path

import pytest

from tests.tables import cases

ROOT = Path(__file__).parents[2]
ROOMS = ("hybrid", "tools", "graphs", "baselines", "training")
PICKLES = ("pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal")
RUNS = ("eval", "exec", "compile", "__import__")
SHELLS = ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput")


def suspicious(source: str) -> list[str]:
    """Return places in a source that could run data, as `line: what`."""
    rows: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            rows += [(node.lineno, f"import {name}") for name in names if name.split(".")[0] in PICKLES]
        elif isinstance(node, ast.Call):
            rows += [(node.lineno, what) for what in _faults_of(node)]
    return [f"{line}: {what}" for line, what in sorted(rows)]


# These loaders build only texts, lists and maps from YAML, whatever types the data name.
TEXTS_ALONE = ("yaml.BaseLoader", "yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader")


def _faults_of(call: ast.Call) -> list[str]:
    name = ast.unparse(call.func)
    by_arg = {word.arg: ast.unparse(word.value) for word in call.keywords if word.arg}
    wrong = (
        [f"trust_remote_code={by_arg['trust_remote_code']}"]
        if by_arg.get("trust_remote_code", "False") != "False"
        else []
    )
    if by_arg.get("shell", "False") != "False" or name in SHELLS:
        wrong.append(f"a shell ({name})")
    if name in RUNS:
        wrong.append(name)
    if name.endswith("torch.load") and by_arg.get("weights_only") != "True":
        wrong.append("torch.load of pickles")
    if name.endswith(("np.load", "numpy.load")) and by_arg.get("allow_pickle", "False") != "False":
        wrong.append("numpy.load of pickles")
    loads = name.endswith("yaml.load") and len(call.args) == 2
    if name.endswith(("yaml.load", "yaml.unsafe_load", "yaml.full_load")) and not (
        loads and ast.unparse(call.args[1]) in TEXTS_ALONE
    ):
        wrong.append(name)
    if name.endswith("from_pretrained") and by_arg.get("use_safetensors", "True") != "True":
        wrong.append("weights that are no safetensors")
    if name.endswith("load_model") and "keras" in name:
        wrong.append(name)
    return wrong


# This is the only such place: the data come from a fork of this process, the only other user of the socket.
OWN_FORK = ("hybrid/running/forked.py", "import pickle")


@pytest.mark.system
@pytest.mark.parametrize("room", ROOMS)
def test_nothing_runs_what_data_says(room: str) -> None:
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    seen = [(str(path.relative_to(ROOT)), what) for path in files for what in suspicious(path.read_text())]
    assert [item for item in seen if (item[0], item[1].partition(": ")[2]) != OWN_FORK] == []


@pytest.mark.parametrize(*cases(__file__, "test_each_of_them_is_seen"))
def test_each_of_them_is_seen(source: str, seen: str) -> None:
    assert suspicious(f"def f():\n    {source}") == [f"2: {seen}"]


def test_what_is_harmless_is_not_seen() -> None:
    harmless = (
        "model.eval()\ntorch.load(p, weights_only=True)\nre.compile(x)\nsubprocess.run([a, b])\nyaml.safe_load(t)\n"
        "yaml.load(t, yaml.BaseLoader)"
    )
    assert suspicious(harmless) == []
