"""Pictures of tools arrive and thinking survives them, or the run reports it before its first question."""

from pathlib import Path
from typing import Any

import pytest

from bench._picture_server import THOUGHT, Treatment, serving
from hybrid.core.errors import UsageError
from tests.picture_runs import run, steps


@pytest.mark.parametrize(
    "treatment",
    [
        Treatment(beside="ignored"),
        # This server ignores tools' pictures but counts tokens for them; the count does not prove that it reads them.
        Treatment(beside="ignored", counts="all"),
        Treatment(beside="ignored", uncounted=True),
        Treatment(beside="ignored", counts="none"),
    ],
)
def test_pictures_of_tools_that_are_not_seen_stop_the_run_before_a_question(
    treatment: Treatment, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with serving(treatment) as server:
        with pytest.raises(UsageError, match=r"does not see pictures of tools.*show=.text..*allow=.blind-tools."):
            run(server, folder)
        assert not (folder / "controller" / "attempts.jsonl").exists()
        count = len(server.requests)
        # The result is cached, so the same command does not check again.
        with pytest.raises(UsageError, match="does not see pictures of tools"):
            run(server, folder)
        assert len(server.requests) == count
        let_in = run(server, folder, allow=("blind-tools",))
        assert "pictures of tools not seen" in let_in["labels"]
        # Without pictures of tools there is nothing to check.
        texts = run(server, tmp_path / "texts", show="text")
        assert "tool_picture" not in texts
        assert texts["labels"] == ["generated questions"]


def test_a_server_that_takes_no_picture_of_a_tool_is_named_with_its_words(tmp_path: Path) -> None:
    with (
        serving(Treatment(beside="refused")) as server,
        pytest.raises(UsageError, match=r"gets no pictures of tools.*user after tool.*show=.text."),
    ):
        run(server, tmp_path / "run")


@pytest.mark.parametrize(
    ("treatment", "place", "thinking", "switch"),
    [
        (Treatment(thinks=True, inside="taken"), "inside", "kept", {}),
        (Treatment(thinks=True, inside="taken", beside="refused"), "inside", "kept", {}),
        (Treatment(thinks=True, keeps=True), "beside", "kept", {}),
        (Treatment(thinks=True, switch=("preserve_thinking", True)), "beside", "switched", {"preserve_thinking": True}),
        (
            Treatment(thinks=True, inside="ignored", switch=("clear_thinking", False)),
            "beside",
            "switched",
            {"clear_thinking": False},
        ),
        (Treatment(thinks=True), "beside", "lost", {}),
        (Treatment(thinks=True, drops_history=True), "beside", "lost", {}),
        # transformers serve accepts a picture inside a tool's result, but drops the thinking of every request.
        (Treatment(thinks=True, drops_history=True, inside="taken"), "inside", "lost", {}),
        # A model that does not think has nothing to lose, and is asked as before.
        (Treatment(inside="taken"), "beside", "none", {}),
        (Treatment(inside="taken", beside="refused"), "inside", "none", {}),
    ],
)
def test_thinking_survives_the_picture_where_the_server_lets_it(
    treatment: Treatment, place: str, thinking: str, switch: dict[str, Any], tmp_path: Path, capsys: Any
) -> None:
    with serving(treatment) as server:
        tool_picture = run(server, tmp_path / "run")["tool_picture"]
    assert (tool_picture["verdict"], tool_picture["place"], tool_picture["thinking"]) == ("sees", place, thinking)
    assert tool_picture["switch"] == ({"chat_template_kwargs": switch} if switch else {})
    # The last request has the tool's picture; check its prompt as the model reads it.
    assert server.prompts[-1].count(THOUGHT) == (thinking in ("kept", "switched"))
    assert server.prompts[-1].count("<|picture|>") == 2
    last = server.requests[-1]
    assert (last["messages"][-1]["role"] == "tool") == (place == "inside")
    notes = capsys.readouterr().err
    assert ("its thinking is lost at each picture" in notes) == (thinking == "lost" and place == "beside")
    assert ("its thinking is lost at each call" in notes) == (thinking == "lost" and place == "inside")


def test_a_run_that_goes_on_knows_the_place_without_asking(tmp_path: Path) -> None:
    treatment, folder = Treatment(thinks=True, inside="taken"), tmp_path / "run"
    with serving(treatment) as server:
        run(server, folder)
        first = len(server.requests)
        run(server, folder, limit=2)
    more = server.requests[first:]
    assert [request["messages"][-1]["role"] for request in more] == ["user", "tool"]


def test_without_counts_the_switch_of_a_known_model_alone_is_sent(tmp_path: Path, capsys: Any) -> None:
    treatment = Treatment(thinks=True, uncounted=True, switch=("preserve_thinking", True))
    with serving(treatment) as server:
        tool_picture = run(server, tmp_path / "known", model="openai:Qwen/Qwen3.6-27B")["tool_picture"]
        assert (tool_picture["thinking"], server.prompts[-1].count(THOUGHT)) == ("switched", 1)
        other = run(server, tmp_path / "other", model="openai:Other-9B")["tool_picture"]
        assert (other["thinking"], server.prompts[-1].count(THOUGHT)) == ("unknown", 0)
    assert "openai:Other-9B: its thinking may be lost at each picture" in capsys.readouterr().err


def test_the_users_own_template_options_stay(tmp_path: Path) -> None:
    body = {"chat_template_kwargs": {"enable_thinking": True, "preserve_thinking": False}, "top_k": 3}
    treatment = Treatment(thinks=True, switch=("clear_thinking", False))
    with serving(treatment) as server:
        run(server, tmp_path / "run", settings={"extra": {"extra_body": body}})
    last = server.requests[-1]
    assert last["chat_template_kwargs"] == {**body["chat_template_kwargs"], "clear_thinking": False}
    assert last["top_k"] == 3


def test_the_place_can_be_said(tmp_path: Path) -> None:
    with serving(Treatment(thinks=True, inside="taken")) as server:
        result = run(server, tmp_path / "run", settings={"tool_pictures": "beside"})
        assert server.requests[-1]["messages"][-1]["role"] == "user"
    assert result["tool_picture"]["thinking"] == "lost"
    assert result["identity"]["model"]["tool_pictures"] == "beside"


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("reversed", "reads them in another order"),
        ("first", "does not get all of them"),
        ("rest", "does not get all of them"),
    ],
)
def test_three_pictures_that_arrive_in_another_order_stop_the_run(order: Any, message: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"tasks": ("Jigsaw",)}
    treatment = Treatment(order=order, counts="none" if order == "first" else "seen")
    with serving(treatment) as server:
        with pytest.raises(UsageError, match=rf"of 3 pictures in one message it {message}.*images=.concat."):
            run(server, tmp_path / "run", **options)
        assert not (tmp_path / "run" / "controller" / "attempts.jsonl").exists()
        joined = run(server, tmp_path / "joined", images="concat", **options)
        assert "picture_order" not in joined
        let_in = run(server, tmp_path / "run", allow=("unordered",), **options)
        assert "pictures out of order" in let_in["labels"]


def test_a_server_that_refuses_three_pictures_is_told_apart_once(tmp_path: Path, capsys: Any) -> None:
    with serving(Treatment(most_pictures=2, words="At most 2 image(s) may be provided in one prompt.")) as server:
        result = run(server, tmp_path / "run", tasks=("Jigsaw",))
    assert result["picture_order"]["verdict"] == "refused"
    note = "its server refuses 3 pictures in one message (StatusError: status 400 "
    err = capsys.readouterr().err
    assert err.count(note) == 1, err
    assert "At most 2 image(s) may be provided in one prompt." in err
    assert "--images concat joins them into one" in err


def test_pictures_in_order_are_asked_for_once_and_two_never(tmp_path: Path) -> None:
    with serving(Treatment()) as server:
        assert run(server, tmp_path / "run", tasks=("Jigsaw",))["picture_order"]["verdict"] == "in order"
        assert "picture_order" not in run(server, tmp_path / "two", tasks=("Spatial_Relation",))


def test_one_more_picture_without_more_tokens_is_a_warning(tmp_path: Path, capsys: Any) -> None:
    with serving(Treatment(counts="constant")) as server:
        run(server, tmp_path / "run", limit=2)
    assert capsys.readouterr().err.count("one more picture took no more prompt tokens") == 1
    noted = [step for step in steps(tmp_path / "run") if step.name == "picture not counted"]
    assert len(noted) == 2
