"""Progress in a notebook is a single output of the cell, which is updated in place.

uv run --with nbclient --with ipykernel pytest -n 0 -m slow tests/hybrid/display/test_notebook.py
"""

import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.display.notebook import line_in_place

CELL = """import hybrid
hybrid.run("blink", data="sample", task="Jigsaw", limit=12, model="embedded", solvers=["mllm", "specialist"],
           backend="classical", out="run")"""


def test_a_line_takes_the_place_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, bool, str]] = []

    def publish(data: Any, metadata: Any, transient: Any, *, update: bool) -> None:
        sent.append((data["text/plain"], update, transient["display_id"]))

    shell = SimpleNamespace(display_pub=SimpleNamespace(publish=publish), config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    line, other = line_in_place(), line_in_place()
    assert line is not None
    assert other is not None
    for text in ("\r 50%   ", "\r 50%", "\r100%", "\n"):
        line.write(text)
    other.write("mllm")
    first = sent[0][2]
    assert sent[:2] == [(" 50%", False, first), ("100%", True, first)]
    assert (sent[2][:2], sent[2][2] != first, len(sent)) == (("mllm", False), True, 3)
    # The bar is drawn with block characters if the file's encoding has them.
    assert line.encoding == "utf-8"
    shell.config = {}
    assert line_in_place() is None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))  # type: ignore[arg-type]
    assert line_in_place() is None


@pytest.mark.slow
def test_a_cell_shows_a_line_a_solver_which_changes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient and ipykernel are of no group")
    pytest.importorskip("ipykernel", reason="nbclient and ipykernel are of no group")
    import nbformat

    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    messages: Counter[str] = Counter()

    class Client(nbclient.NotebookClient):  # type: ignore[misc, name-defined, unused-ignore]
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            messages[msg["msg_type"]] += 1
            return super().process_message(msg, cell, cell_index)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    Client(notebook, timeout=500, resources={"metadata": {"path": str(tmp_path)}}).execute()
    lines, result = notebook.cells[0].outputs[:-1], notebook.cells[0].outputs[-1]
    text_plains = [item.data["text/plain"] for item in lines if item.output_type == "display_data"]
    assert [(line.split(":")[0], "12/12" in line) for line in text_plains] == [("mllm", True), ("specialist", True)]
    assert messages["update_display_data"] >= 4
    assert not [entry for entry in lines if entry.output_type == "stream" and "q/s" in entry.text]
    assert "text/markdown" in result.data
