"""A picture that a tool made never ends a question: it is made to fit, or its refusal is a fault of the tool."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench._picture_server import PictureServer, Treatment, _pictures, _size, serving
from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.types import Fault
from hybrid.models.caller import AROUND_BYTES
from hybrid.models.failures import StatusError, UnreadableReplyError, blames_picture, read_failure
from hybrid.models.picture_limits import PictureLimits, fit_picture, limits_of
from tests.picture_runs import manifest, run, steps

THIN = {"images": ["img:1"], "box": {"x0": 5, "y0": 5, "x1": 200, "y1": 6}, "scale": 1}
CLAUDE = PictureLimits(0, 0, 8000, 100, 20, 2000, 10_000_000, 32_000_000)
TINY = {"images": ["img:1"], "box": {"x0": 5, "y0": 5, "x1": 9, "y1": 8}, "scale": 1}


def sizes_sent(server: PictureServer) -> list[tuple[int, int]]:
    """Return sizes of tools' pictures in the last request."""
    return [_size(url) for message in server.requests[-1]["messages"][2:] for url in _pictures(message)]


@pytest.mark.system
@pytest.mark.parametrize("status", [400, 413, 415, 422, 500])
@pytest.mark.parametrize("words", ["height:1 or width:195 must be larger than factor:28", "Internal Server Error", ""])
def test_ten_refusals_of_pictures_of_a_tool_are_its_faults(status: int, words: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with serving(Treatment(least_side=28, call=THIN, status=status, words=words)) as server:
        run(server, folder, limit=12)
    values = [step for step in steps(folder) if step.fault is not None]
    assert [step.fault for step in values] == [Fault.PICTURE_REFUSED] * 12
    assert {step.data["tool"] for step in values} == {"crop"}
    assert "195 x 1 px: the model's server did not take this picture" in values[0].text.replace("(", "").replace(
        ")", ""
    )
    text = str(server.requests[-1]["messages"])
    assert "was not taken" in text
    assert "ask for a larger region" in text
    assert words[:20] in text
    # Each picture is refused once, or twice if the server does not say that the picture is the reason.
    refused = sum(message["role"] == "tool" for request in server.requests for message in request["messages"])
    assert refused <= 4 + 12 * 4


@pytest.mark.parametrize(
    ("error", "blamed"),
    [
        (StatusError(400, "the context is too long"), True),
        (StatusError(500, "Internal Server Error"), False),
        (StatusError(500, "absolute aspect ratio must be smaller than 200"), True),
        (UnreadableReplyError("the reply is an error: cannot identify image file"), True),
        (UnreadableReplyError("the reply is not JSON: <html><image>"), None),
        (StatusError(503, "image worker is busy"), None),
        (StatusError(429, "too many images a minute"), None),
        (StatusError(401, "no key for images"), None),
        (StatusError(400, {"error": {"code": "content_policy_violation", "message": "image"}}), None),
        (TimeoutError("image"), None),
    ],
)
def test_what_a_picture_is_blamed_for(error: Exception, blamed: bool | None) -> None:
    assert blames_picture(read_failure(error), error) is blamed


@pytest.mark.parametrize(
    ("model", "settings", "call", "size"),
    [
        # The picture of 195 x 1 px is enlarged until its longer side is 2,048 px, and padded to the minimum side
        # length.
        ("openai:Qwen2.5-VL-7B", {}, THIN, (2048, 28)),
        ("openai:Qwen/Qwen3-VL-8B", {}, THIN, (2048, 32)),
        ("openai:k", {"image_limits": "least_side:56"}, THIN, (2048, 56)),
        ("openai:Qwen2.5-VL-7B", {"max_pixels": 28_000}, THIN, (1000, 28)),
        ("openai:k", {"image_limits": "most_ratio:50"}, THIN, (195, 4)),
        ("openai:Qwen2.5-VL-7B", {}, TINY, (37, 28)),
        ("openai:k", {"image_limits": "most_side:100"}, {"images": ["img:1"], "scale": 1}, (100, None)),
        ("openai:k", {}, THIN, (195, 1)),
    ],
)
def test_pictures_of_tools_fit_the_known_limits(
    model: str, settings: dict[str, Any], call: dict[str, Any], size: tuple[int, int | None], tmp_path: Path
) -> None:
    with serving(Treatment(call=call)) as server:
        run(server, tmp_path / "run", model=model, settings=settings)
    width, height = sizes_sent(server)[-1]
    assert (width, height) == (size[0], size[1] or height)
    step = next(step for step in steps(tmp_path / "run") if step.kind == "tool")
    ref = step.images[-1]
    assert (ref.image.width, ref.image.height) == (width, height)
    assert ref.box is not None
    # The content starts at the picture's top-left corner and is scaled by `ref.scale`, so a point of the picture maps
    # to its parent by scale alone.
    longer = max(ref.box.x1 - ref.box.x0, ref.box.y1 - ref.box.y0) * ref.scale
    assert longer == pytest.approx(max(width, height), abs=0.51)


@pytest.mark.parametrize(
    ("size", "limits", "picture"),
    [
        ((1, 1), PictureLimits(least_side=32), (32, 32)),
        ((1, 300), PictureLimits(least_side=28, most_ratio=200), (28, 2048)),
        ((1, 9000), PictureLimits(least_side=28, most_ratio=200), (45, 9000)),
        ((9000, 1), PictureLimits(28, 200, 8000, 100, 20, 2000), (2000, 28)),
        ((8000, 6000), PictureLimits(most_side=8000, many=20, most_side_of_many=2000), (2000, 1500)),
        ((28, 5600), PictureLimits(28, 200), None),
        ((28, 5601), PictureLimits(28, 200), (29, 5601)),
        ((640, 480), PictureLimits(28, 200, 8000), None),
        ((1, 300), PictureLimits(), None),
    ],
)
def test_sizes_that_fit(size: tuple[int, int], limits: PictureLimits, picture: tuple[int, int] | None) -> None:
    fit = fit_picture(*size, limits)
    assert (fit and fit.picture) == picture
    if fit is not None:
        assert fit_picture(*fit.picture, limits) is None


def urls_sent(server: PictureServer) -> list[str]:
    """Return base64 texts of the pictures in the last request, those of the question first."""
    requests = [url for message in server.requests[-1]["messages"] for url in _pictures(message)]
    return [url.partition(",")[2] for url in requests]


# A noisy crop of the whole picture, larger than the limits below.
WHOLE = {"images": ["img:1"], "scale": 2}


@pytest.mark.parametrize(("most", "is_smaller"), [(25_000, False), (9_000, True)])
def test_pictures_of_tools_have_no_more_bytes_than_the_server_takes(
    most: int, *, is_smaller: bool, tmp_path: Path
) -> None:
    with serving(Treatment(call=WHOLE)) as server:
        run(server, tmp_path / "free")
        free = urls_sent(server)
        size = sizes_sent(server)[-1]
        run(server, tmp_path / "run", settings={"image_limits": f"most_bytes:{most}"})
    assert len(free[-1]) > 25_000
    assert len(urls_sent(server)[-1]) <= most
    # Either a JPEG of lower quality suffices, or the picture is reduced, as its scale shows.
    assert (sizes_sent(server)[-1] < size) is is_smaller
    step = next(step for step in steps(tmp_path / "run") if step.kind == "tool")
    ref = step.images[-1]
    assert ref.box is not None
    assert (ref.box.x1 - ref.box.x0) * ref.scale == pytest.approx(sizes_sent(server)[-1][0], abs=0.51)


def test_a_picture_of_the_question_is_written_with_fewer_bytes_at_its_size(tmp_path: Path) -> None:
    with serving(Treatment()) as server:
        run(server, tmp_path / "free")
        [free, *_] = urls_sent(server)
        run(server, tmp_path / "run", settings={"image_limits": f"most_bytes:{len(free) - 1}"})
    [sent, *_] = urls_sent(server)
    assert len(sent) < len(free)
    assert _size(f"data:image/jpeg;base64,{sent}") == _size(f"data:image/png;base64,{free}")


def test_a_request_of_too_many_bytes_leaves_the_oldest_pictures_of_tools_out(tmp_path: Path) -> None:
    # Without a region, crop returns four quadrants.
    call = {"images": ["img:1"]}
    with serving(Treatment(call=call)) as server:
        run(server, tmp_path / "free")
        free = urls_sent(server)
        most = sum(map(len, free)) + AROUND_BYTES
        run(server, tmp_path / "run", settings={"image_limits": f"most_request_bytes:{most}"})
    assert 1 <= len(urls_sent(server)) < len(free)
    assert urls_sent(server)[0] == free[0]
    assert urls_sent(server)[-1] == free[-1]
    assert "not shown; the server does not accept a larger request" in str(server.requests[-1]["messages"])
    assert not [step for step in steps(tmp_path / "run") if step.fault is not None]


def test_more_pictures_than_a_server_takes_leave_the_oldest_of_tools_out(tmp_path: Path) -> None:
    # Without a region, crop returns four quadrants.
    call = {"images": ["img:1"]}
    with serving(Treatment(most_pictures=3, call=call)) as server:
        run(server, tmp_path / "run", settings={"image_limits": "most_pictures:3"})
    assert len(sizes_sent(server)) == 2
    assert "the server accepts 3 pictures in one request" in str(server.requests[-1]["messages"])
    assert not [step for step in steps(tmp_path / "run") if step.fault is not None]
    assert manifest(tmp_path / "run")["identity"]["model"]["image_limits"] == "most_pictures:3"


@pytest.mark.parametrize("limits", ["least:28", "least_side", "least_side:-1", "least_side:1.5", "most_ratio=200"])
def test_limits_in_another_form_are_refused(limits: str) -> None:
    with pytest.raises(UsageError, match=r"image_limits.*the names are least_side, most_ratio"):
        ModelSettings(image_limits=limits)


@pytest.mark.parametrize(
    ("name", "url", "limits"),
    [
        ("anthropic:claude-sonnet-5", None, CLAUDE),
        ("openai:claude-sonnet-5", "https://api.anthropic.com/v1", CLAUDE),
        # A router may ask Bedrock, whose limit is lower.
        (
            "openai:anthropic/claude-sonnet-5",
            "https://openrouter.ai/api/v1",
            replace(CLAUDE, most_bytes=5_242_880, most_request_bytes=0),
        ),
        (
            "openai:qwen3-vl-plus",
            "https://dashscope.aliyuncs.com/compatible-mode/v1",
            PictureLimits(32, 200, most_pictures=250, most_bytes=10_485_760),
        ),
        ("openai:zai-org/GLM-4.6V", "http://127.0.0.1:8000/v1", PictureLimits(28, 200)),
        (
            "openai:llama-4-scout",
            "https://api.groq.com/openai/v1",
            PictureLimits(most_pictures=5, most_request_bytes=4_000_000),
        ),
        ("openai:llama-4-scout", "https://api.groq.com.example.org/v1", PictureLimits()),
        ("openai:gpt-4o", None, PictureLimits(most_pictures=1500)),
        ("openai:gpt-4o", "http://127.0.0.1:8000/v1", PictureLimits()),
        ("embedded", None, PictureLimits()),
        (None, None, PictureLimits()),
    ],
)
def test_limits_by_model_and_address(name: str | None, url: str | None, limits: PictureLimits) -> None:
    assert limits_of(name, ModelSettings(base_url=url)) == limits
