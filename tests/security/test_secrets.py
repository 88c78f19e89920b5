"""No key is in any file or output of a run, however it was given and whatever the server does with it.

A real run over a socket, as a user starts it. The server, which is also the proxy, returns everything that it
received: in the bodies of errors, in replies, in headers. Then every file under the run folder and `HYBRID_HOME`,
stdout and stderr are searched for each secret in each form.
"""

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.runnable import forked
from tests.servers import JsonHandler, LocalServer, listening

pytestmark = pytest.mark.system

SECRETS = {
    "key of the environment": "sk-zq81-environment-0123456789",
    "key of another provider": "sk-ant-zq82-unused-0123456789",
    "variable that nobody reads": "zq83-unread-0123456789",
    "path of the base URL": "zq84-path-0123456789",
    "user of the base URL": "zq85-login-0123456789",
    "query of the base URL": "zq86-query-0123456789",
    "extra_body": "zq87-body-0123456789",
    "default_query": "zq88-parameter-0123456789",
    "proxy": "zq89-pr/xy&0123456789",
}
HEADER = "zq90-header-0123456789"


@dataclass
class Echo:
    """A server and proxy on 127.0.0.1 that returns what it receives, with each of `statuses` in turn and then always
    the last."""

    statuses: list[int]
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        echo = self

        class Handler(JsonHandler):
            def posted(self, body: bytes) -> None:
                text = body.decode()
                login = self.headers.get("proxy-authorization", "").removeprefix("Basic ")
                sent = f"{self.path}\n{self.headers}\n{base64.b64decode(login).decode()}\n{text[:200]}...{text[-2000:]}"
                echo.requests.append(sent)
                status = echo.statuses.pop(0) if len(echo.statuses) > 1 else echo.statuses[0]
                headers = {"x-request-id": self.headers.get("authorization", ""), "x-sent": quote(sent)}
                self.answer(_reply_body(status, sent), status, headers)

        self.server = LocalServer(Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"


def _reply_body(status: int, sent: str) -> dict[str, Any]:
    if status != 200:
        return {"error": {"message": f"wrong: {sent}", "param": sent, "code": sent[:300]}}
    message = {"role": "assistant", "content": f"Answer: (A) {sent}", "reasoning_content": sent}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": sent, "object": "chat.completion", "created": 0, "model": sent, "choices": [choice]}


@pytest.fixture
def echo() -> Iterator[Echo]:
    item = Echo([200])
    with listening(item.server):
        yield item


@dataclass(frozen=True)
class Place:
    """Environment of a run: its data, its folder, its variables."""

    data: Path
    out: Path
    environment: Mapping[str, str]


@pytest.fixture
def place(tmp_path: Path, hybrid_home: Path, echo: Echo, fakes: Any) -> Place:
    fakes.blink_folder(tmp_path / "data", 2, 2)
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment |= {
        "HYBRID_HOME": str(hybrid_home),
        "OPENAI_API_KEY": SECRETS["key of the environment"],
        "ANTHROPIC_API_KEY": SECRETS["key of another provider"],
        "SOMEBODYS_TOKEN": SECRETS["variable that nobody reads"],
        "HTTP_PROXY": f"http://me:{quote(SECRETS['proxy'], safe='')}@{echo.address}",
    }
    return Place(tmp_path / "data", tmp_path / "run", environment)


def hybrid(place: Place, *words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*forked(), "-m", "hybrid", *map(str, words)],
        cwd=place.data.parent,
        env=dict(place.environment),
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )


def run(place: Place, *words: object, login: bool = False) -> "subprocess.CompletedProcess[str]":
    """Run with a secret in every place that accepts one; a login in the URL is sent instead of the key."""
    text = f"{SECRETS['user of the base URL']}:{SECRETS['user of the base URL']}@" if login else ""
    address = f"http://{text}models.invalid/{SECRETS['path of the base URL']}/v1?sig={SECRETS['query of the base URL']}"
    return hybrid(
        place,
        *("run", "blink", "--data", place.data, "--out", place.out, "--model", "openai:m", "--base-url", address),
        *("--model-arg", "extra_body=" + json.dumps({"account": {"code": SECRETS["extra_body"]}})),
        *("--model-arg", "default_query=" + json.dumps({"sig": SECRETS["default_query"]})),
        *("--model-arg", "retries=1", "--model-arg", "timeout_s=120", "--backend", "classical", "--concurrency", 1),
        *words,
    )


def forms(secret: str) -> list[str]:
    """Forms of a secret that a person would look for, computed by other means than the redaction."""
    basic = [base64.b64encode(f"{user}:{secret}".encode()).decode()[8:-4] for user in ("m", "me", "you", secret)]
    return [
        secret,
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        secret.replace("&", "&amp;"),
        *basic,
        secret[4:14],
    ]


def left_behind(place: Place, *result: "subprocess.CompletedProcess[str]", **more: str) -> list[str]:
    """Return one line for each secret in each file or stream that contains it."""
    texts = {f"{name} of command {number}": text for number, item in enumerate(result) for name, text in _streams(item)}
    for root in (place.out, Path(place.environment["HYBRID_HOME"])):
        for path in (path for path in root.rglob("*") if path.is_file()):
            texts[str(path.relative_to(root))] = path.read_bytes().decode("utf-8", "replace")
            texts[f"the name of {path.name}"] = str(path.relative_to(root))
    return [
        f"{what} in {key}"
        for what, secret in {**SECRETS, **more}.items()
        for key, text in texts.items()
        if any(form in text for form in forms(secret))
    ]


def nothing_in(names: list[str]) -> None:
    """Fail with all secrets found, one per line."""
    assert not names, "\n".join(names)


def _streams(finished: "subprocess.CompletedProcess[str]") -> list[tuple[str, str]]:
    return [("stdout", finished.stdout), ("stderr", finished.stderr)]


def test_a_run_with_replies_and_errors_that_hold_every_key(place: Place, echo: Echo) -> None:
    echo.statuses[:] = [200, 500, 200, 400, 500, 500, 200]
    # The server returns the tools of the request, which look like calls that were left in the text.
    result = run(place, "--solver", "mllm", "--solver", "controller", "--allow", "toolless", "--json")
    scored = hybrid(place, "score", place.out, "--json")
    # Check that the secrets were sent at all.
    sent = "".join(echo.requests)
    reached = {name for name, secret in SECRETS.items() if secret in sent or quote(secret, safe="") in sent}
    assert reached >= {"key of the environment", "path of the base URL", "extra_body", "default_query", "proxy"}
    assert (place.out / "mllm" / "attempts.jsonl").stat().st_size > 0
    nothing_in(left_behind(place, result, scored))
    assert json.loads(result.stdout)


def test_a_wrong_key_that_the_server_repeats(place: Place, echo: Echo) -> None:
    echo.statuses[:] = [401]
    result = run(place, "--solver", "mllm", login=True)
    assert result.returncode != 0
    assert echo.requests
    nothing_in(left_behind(place, result))


def test_a_dry_run_shows_no_key(place: Place) -> None:
    result = run(place, "--dry-run", "--json", login=True)
    assert json.loads(result.stdout)
    nothing_in(left_behind(place, result))


def test_a_header_is_refused_or_not_shown(place: Place, echo: Echo) -> None:
    """`default_headers` may be refused, as secrets belong in the environment; the message must not print the header's
    value."""
    words = ("--model-arg", "default_headers=" + json.dumps({"x-auth": HEADER}), "--solver", "mllm")
    result = run(place, *words)
    nothing_in(left_behind(place, result, header=HEADER))
    assert result.returncode == 2 or HEADER in "".join(echo.requests)
