"""The page of `hybrid tools try` over a real socket and in a real browser, with a tool whose file changes."""

import http.client
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hybrid.core import slow_images
from hybrid.integrations.tool_page import MAX_CALL_BYTES, ToolPage, same_calls
from hybrid.integrations.tool_process import ToolProcess, ToolProcessOptions
from hybrid.plugins.discovery import folders
from tests.hybrid.report.conftest import CHROMIUM, HANGS_MS
from tests.image_bytes import saved
from tests.servers import listening

pytestmark = pytest.mark.system

SOURCE = '''
from typing import Annotated

from hybrid.tool import Image, ToolOutput, tool


@tool(limits="None.")
def light(image: Image, above: Annotated[int, "grey level"] = 100) -> ToolOutput:
    """Says how much of a picture is light."""
    print("a tool may print")
    share = float((image.mean(axis=2) > above).mean())
    return ToolOutput(f"NAME: {share:.2f}.", share_0_1=share)
'''


@dataclass(frozen=True)
class Trial:
    """A page, its address, and the file of its tool."""

    page: ToolPage
    source: Path

    def write(self, text: str) -> None:
        """Write the tool's file and set its modification time one second later, even if the clock did not move."""
        modified_ns = self.source.stat().st_mtime_ns if self.source.exists() else 0
        self.source.write_text(text)
        os.utime(self.source, ns=(modified_ns + 10**9, modified_ns + 10**9))

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
        """Send a request as the page does, optionally with other headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.page.port)
        usual = {"Origin": self.page.url.rstrip("/"), "Content-Type": "application/json"}
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in {**usual, **names}.items() if value}
        try:
            connection.request(method, path, body or None, sent)
            response = connection.getresponse()
            data = response.read()
            is_json = response.headers["Content-Type"] == "application/json"
            return response.status, json.loads(data) if is_json else data
        finally:
            connection.close()

    def call(self, photos: list[int], **args: object) -> dict[str, Any]:
        status, answer = self.send("POST", "/call", json.dumps({"photos": photos, "args": args}).encode())
        assert status == 200
        result: dict[str, Any] = answer
        return result


@contextmanager
def trial_in(folder: Path) -> Iterator[Trial]:
    tools = folder / "my_tools"
    tools.mkdir()
    (tools / "light.py").write_text(SOURCE)
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :10] = 255
    Image.fromarray(pixels).save(folder / "photo.png")
    places = {"tools": (*folders("tools"), str(tools))}
    with ToolProcess(ToolProcessOptions("light", folders=places)) as process:
        page = ToolPage(process, [folder / "photo.png"], ["--backend", "classical"])
        with listening(page):
            yield Trial(page, tools / "light.py")


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    folder = tmp_path_factory.mktemp("trial")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(folder / "home"))
        with trial_in(folder) as built:
            yield built


def test_a_call_gives_all_that_the_tool_says_and_the_same_call_elsewhere(trial: Trial) -> None:
    status, about = trial.send("GET", "/tool.json")
    assert (status, about["name"], about["images"], about["photos"]) == (200, "light", [1, 1], ["photo.png"])
    assert about["schema"]["properties"]["above"]["description"] == "grey level (default 100)"
    assert "files" not in about
    answer = trial.call([0], above=50)
    assert answer["text"].endswith(": 0.25.")
    assert answer["data"] == {"share_0_1": 0.25}
    assert answer["seconds"] >= 0
    photo = str(trial.page.photo(0))
    assert answer["same"] == {
        "Command": f"hybrid tools run light {photo} --args '{{\"above\": 50}}' --backend classical",
        "Python": f"hybrid.tool('light').run('{photo}', above=50)",
        "MCP": json.dumps({"name": "light", "arguments": {"image": photo, "above": 50}}),
    }


def test_a_picture_that_is_sent_is_kept_and_served(trial: Trial) -> None:
    data = trial.page.photo(0).read_bytes()
    status, answer = trial.send("POST", "/photos", data, Content_Type="application/octet-stream")
    assert status == 200
    assert trial.send("GET", f"/photos/{answer['number']}") == (200, data)
    assert trial.call([answer["number"]])["text"].endswith(": 0.25.")
    status, answer = trial.send("POST", "/photos", b"<html>", Content_Type="application/octet-stream")
    assert trial.send("GET", f"/photos/{answer['number']}")[0] == 404
    assert "image" in trial.call([answer["number"]])["error"]


def test_a_picture_that_is_slow_to_open_is_not_opened(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved(Image.new("L", (8, 8)), "JPEG", progressive=True)
    _, answer = trial.send("POST", "/photos", data, Content_Type="application/octet-stream")
    assert trial.send("GET", f"/photos/{answer['number']}") == (200, data)
    monkeypatch.setattr(slow_images, "MAX_SCANS", 1)
    assert trial.send("GET", f"/photos/{answer['number']}")[0] == 404


def test_what_a_tool_refuses_is_an_answer(trial: Trial) -> None:
    assert "above" in trial.call([0], above="much")["error"]
    assert "1 image" in trial.call([0, 0])["error"]


@pytest.mark.parametrize(
    ("status", "path", "headers"),
    [
        (403, "/call", {"Origin": ""}),
        (403, "/call", {"Origin": "http://example.com"}),
        (421, "/call", {"Host": "example.com"}),
        (415, "/call", {"Content_Type": "text/plain"}),
        (413, "/call", {"Content_Length": str(MAX_CALL_BYTES + 1)}),
        (411, "/call", {"Content_Length": "-1"}),
        (404, "/run", {}),
        (400, "/call", {}),
    ],
)
def test_no_other_page_can_call_a_tool(trial: Trial, status: int, path: str, headers: dict[str, str]) -> None:
    assert trial.send("POST", path, b'{"photos": [99], "args": {}}', **headers)[0] == status


def test_a_changed_file_is_loaded_anew_and_a_broken_one_says_where(tmp_path: Path) -> None:
    with trial_in(tmp_path) as trial:
        assert trial.call([0])["text"] == "NAME: 0.25."
        trial.write(SOURCE.replace("NAME", "Light"))
        assert trial.send("GET", "/tool.json")[1]["starts"] == 2
        assert trial.call([0])["text"] == "Light: 0.25."
        trial.write(SOURCE.replace("return ", "return return "))
        assert "light.py" in trial.call([0])["error"]
        trial.write(SOURCE.replace("share = ", "import os; os._exit(3); share = "))
        assert "light" in trial.call([0])["error"]
        trial.write(SOURCE)
        assert trial.call([0])["text"] == "NAME: 0.25."


def test_several_pictures_and_names_that_a_shell_would_read() -> None:
    same = same_calls("pair", ["a b.png", "c.png"], {"not a name": 1}, [])
    assert same["Command"] == "hybrid tools run pair 'a b.png' c.png --args '{\"not a name\": 1}'"
    assert json.loads(same["MCP"])["arguments"]["images"] == ["a b.png", "c.png"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt install chromium, or set CHROMIUM to the path of one")
def test_in_a_browser_a_picture_is_sent_an_argument_set_and_a_new_file_called(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is in the dependency group dev")
    expect = playwright.expect
    wrong: list[str] = []
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with trial_in(tmp_path) as trial, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.set_default_timeout(HANGS_MS)
        page.on("console", lambda text: wrong.append(text.text) if text.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(trial.page.url)
        answer_text = page.locator("#answer .text")
        # The tool is called on the command line's picture immediately.
        expect(answer_text).to_have_text("NAME: 0.25.", timeout=HANGS_MS)
        page.get_by_label("above").fill("255")
        page.get_by_role("button", name="Run").click()
        expect(answer_text).to_have_text("NAME: 0.00.", timeout=HANGS_MS)
        Image.new("RGB", (8, 8), "white").save(tmp_path / "white.png")
        page.get_by_label("above").fill("100")
        page.locator("input[type=file]").set_input_files(tmp_path / "white.png")
        expect(answer_text).to_have_text("NAME: 1.00.", timeout=HANGS_MS)
        expect(page.locator("#photos img")).to_have_count(1)
        expect(page.locator("pre", has_text="hybrid tools run light")).to_be_visible()
        trial.write(SOURCE.replace("NAME", "<b>Light</b>"))
        # The argument that was set is kept, and the text of a tool is shown as text.
        expect(answer_text).to_have_text("<b>Light</b>: 1.00.", timeout=HANGS_MS)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        browser.close()
    assert wrong == []
