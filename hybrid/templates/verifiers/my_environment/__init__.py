"""The questions, tools and scorer of a run of hybrid, as an environment of verifiers.

    vf-eval my_environment --env.taskset.hybrid PATH/TO/hybrid/.venv/bin/hybrid -m MODEL --client.base-url URL

hybrid itself asks the model: with its prompts, its pictures and its tools, whose text and pictures it sends back. Every
request goes through verifiers, which chooses model and sampling and records the conversation. The reward is hybrid's
score. `run.json` holds the options of the run; `--env.taskset.run FILE` takes others, as `hybrid run --config FILE`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

import verifiers.v1 as vf

__all__ = ["MyEnvironmentEnv", "MyEnvironmentHarness", "MyEnvironmentTaskset"]

# The key of a trace's `info` with the result of a question.
RESULT = "hybrid"


class RolloutProcess:
    """The process `hybrid rollouts`, which loads data and tools once and answers several questions at a time."""

    def __init__(self, hybrid: str, run: str) -> None:
        command = [hybrid, "rollouts", "--config", run]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own program
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise RuntimeError(f"{hybrid}: {error.strerror}; name the program with --env.taskset.hybrid") from error
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        threading.Thread(target=self._read, name="hybrid rollouts", daemon=True).start()

    def ask(self, **request: Any) -> Future[dict[str, Any]]:
        """Send a request; the result has the response, or a `RuntimeError` with its reason."""
        response: Future[dict[str, Any]] = Future()
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = response
            try:
                self._process.stdin.write(f"{json.dumps({'id': number, **request})}\n")
                self._process.stdin.flush()
            except OSError:
                self._fail_waiting()
        return response

    def _read(self) -> None:
        for line in self._process.stdout:
            response = json.loads(line)
            with self._lock:
                waiting = self._waiting.pop(response.pop("id"), None)
            # verifiers stopped this rollout, so nothing waits for its answer.
            if waiting is None or not waiting.set_running_or_notify_cancel():
                continue
            if "error" in response:
                waiting.set_exception(RuntimeError(response["error"]))
            else:
                waiting.set_result(response)
        with self._lock:
            self._fail_waiting()

    def _fail_waiting(self) -> None:
        reason = f"hybrid rollouts ended with exit code {self._process.wait()}; its last lines on stderr say why"
        while self._waiting:
            _, waiting = self._waiting.popitem()
            if waiting.set_running_or_notify_cancel():
                waiting.set_exception(RuntimeError(reason))


@cache
def rollouts(hybrid: str, run: str) -> RolloutProcess:
    """Return the process for the options in the file `run`, one in each process of verifiers."""
    return RolloutProcess(hybrid, run)


class QuestionData(vf.TaskData):
    """One question. `prompt` is what hybrid sends the model first, with the pictures as content parts."""

    question: str
    hybrid: str
    run: str


class QuestionTask(vf.Task[QuestionData]):
    """Reads the score that hybrid gave the answer."""

    @property
    def key(self) -> str:
        """The question's id."""
        return self.data.question

    @vf.reward
    async def correct(self, trace: vf.Trace) -> float:
        """Return hybrid's score of the answer, 0 to 1."""
        return float(_result(trace)["reward"])

    @vf.metric
    async def answered(self, trace: vf.Trace) -> float:
        """Return 1 if hybrid could read an answer in the reply."""
        return float(_result(trace)["outcome"] == "answered")

    @vf.metric
    async def tool_calls(self, trace: vf.Trace) -> float:
        """Return the number of tool calls."""
        return float(_result(trace)["tool_calls"])


def _result(trace: vf.Trace) -> dict[str, Any]:
    if RESULT not in trace.info:
        raise RuntimeError("hybrid did not answer this question: leave out --env.agent.harness.id")
    return trace.info[RESULT]


class MyEnvironmentConfig(vf.TasksetConfig):
    """Which questions, and which program asks them."""

    hybrid: str = "hybrid"
    """The program hybrid, with its path if it is not on PATH: verifiers needs an environment of its own."""
    run: Path = Path(__file__).with_name("run.json")
    """Options of `hybrid run`, a YAML or JSON file or a run's folder."""


class MyEnvironmentTaskset(vf.Taskset[QuestionTask, MyEnvironmentConfig]):
    """The questions that have a reward, read one by one."""

    def load(self) -> Iterator[QuestionTask]:
        """Yield the questions in the order of the data."""
        program = {"hybrid": self.config.hybrid, "run": str(self.config.run.absolute())}
        process = rollouts(**program)
        for question in process.ask(do="list").result()["questions"]:
            prompt = process.ask(do="messages", question=question).result()["messages"]
            yield QuestionTask(QuestionData(question=question, id=question, prompt=prompt, **program), self.config.task)


class MyEnvironmentHarness(vf.Harness[vf.HarnessConfig]):
    """Lets hybrid ask a question: all of its requests to the model go through verifiers."""

    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: QuestionData,
    ) -> vf.ProgramResult:
        """Answer and score one question."""
        if data.system_prompt is not None:
            raise ValueError("hybrid writes the system prompt: change its texts with `prompts` in the file of options")
        process = rollouts(data.hybrid, data.run)
        request = {"question": data.question, "model": ctx.model, "base_url": endpoint, "key": secret}
        trace.info[RESULT] = await asyncio.wrap_future(process.ask(do="answer", **request))
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


class MyEnvironmentEnvConfig(vf.SingleAgentEnvConfig):
    """One agent, without a sandbox: the model runs no code."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class MyEnvironmentEnv(vf.Env[MyEnvironmentEnvConfig]):
    """Each question is asked once per rollout."""

    async def run(self, task: QuestionTask, agents: Any) -> None:
        """Ask one question."""
        await agents.agent.run(task)
