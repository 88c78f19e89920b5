"""A Python interpreter for tests that run many commands: each runs in a fork of a process that has loaded slow imports.

    python tests/forked.py FOLDER                                # serves until its input ends, then removes FOLDER
    python tests/forked.py FOLDER/project -m hybrid tools list   # the same as `python -m hybrid tools list`
    python tests/forked.py FOLDER/libraries FILE WORD            # the same as `python FILE WORD`

Loading takes longer than most commands. The server loads once and forks for every command, which gets the words, the
working directory, the environment and the streams of the caller. `libraries` has torch, transformers and LangGraph,
and no module of the project: its code comes from `PYTHONPATH` and is imported again. `project` also has the modules
of this checkout, which neither read the environment nor start threads when they are loaded.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import sys
import threading
from contextlib import suppress

STREAMS = (0, 1, 2)
# Classes of transformers for the demonstration model: accessing such a name imports its module.
MODEL = (
    "AutoModelForImageTextToText AutoProcessor CLIPVisionModel LlamaModel LlavaForConditionalGeneration LlavaProcessor"
)
ROOMS = "baselines graphs tools hybrid.benchmarks hybrid.cli hybrid.exporting hybrid.scoring.sections"
MODELS = "hybrid.models.chat_completions hybrid.models.providers"


def ask(path: str, words: list[str]) -> int:
    """Run a command in a forked process; return its exit code. The forked process is killed if this process ends
    first."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [b"!"], STREAMS)
        server.sendall(json.dumps([words, os.getcwd(), dict(os.environ)]).encode() + b"\n")
        return int(server.recv(16) or b"1")


def load_libraries() -> None:
    """Import the slow libraries."""
    import langgraph.graph
    import pytest
    import torch
    import torchvision
    import transformers
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    for name in MODEL.split():
        getattr(transformers, name)
    get_checkpoint_conversion_mapping("llava")  # The first call compiles a thousand regular expressions.
    del langgraph, pytest, torch, torchvision


def load_project() -> None:
    """Import the modules of the project that commands look up by name, and their imports."""
    sys.path[0] = os.path.dirname(sys.path[0])
    for room in map(importlib.import_module, f"{ROOMS} {MODELS}".split()):
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)


def serve(folder: str) -> None:
    """Load the libraries and fork for each command; returns only in a command's process, which is ready to run it."""
    load_libraries()
    name = "libraries"
    if os.fork() == 0:
        load_project()
        name = "project"
    gc.collect()
    gc.freeze()
    running: dict[int, tuple[int, socket.socket]] = {}
    waiting: dict[socket.socket, int] = {}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.join(folder, name))
        listener.listen()
        os.write(1, b"ready\n")
        while sys.stdin not in (ready := select.select([listener, sys.stdin, *running, *waiting], [], [])[0]):
            for item in ready:
                if item is listener:
                    question, _ = listener.accept()
                    _, streams, _, _ = socket.recv_fds(question, 1, len(STREAMS))
                    request = question.makefile("rb").readline()
                    command = os.fork()
                    if command == 0:
                        return become(streams, *json.loads(request))
                    for stream in streams:
                        os.close(stream)
                    result = os.pidfd_open(command)
                    running[result], waiting[question] = (command, question), result
                elif item in running:
                    command, question = running.pop(item)
                    os.close(item)
                    code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
                    waiting.pop(question, None)
                    with question, suppress(ConnectionError):
                        question.sendall(b"%d" % code)
                elif item in waiting:
                    signal.pidfd_send_signal(waiting.pop(item), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def become(streams: list[int], words: list[str], folder: str, environment: dict[str, str]) -> None:
    """Take over the streams, words, folder and environment of the caller."""
    for stream, current in zip(streams, STREAMS, strict=True):
        os.dup2(stream, current)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # On the path, replace this file's folder by the working directory or the script's folder, followed by PYTHONPATH.
    first = folder if words[0] == "-m" else os.path.dirname(os.path.abspath(words[0]))
    sys.path[:1] = [first, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = words


if len(sys.argv) > 2:
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
serve(sys.argv[1])
code = 0
try:
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as ended:
    if isinstance(ended.code, str):
        raise
    code = ended.code or 0
# Exit as any process does, but without freeing loaded modules, which takes longer than most commands.
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
