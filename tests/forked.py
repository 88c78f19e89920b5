"""Python for tests that run many commands: each in a process of its own that has torch, transformers and LangGraph.

    python tests/forked.py FOLDER/SOCKET                      # serves until its input ends, then removes FOLDER
    python tests/forked.py FOLDER/SOCKET -m hybrid tools list # does what `python -m hybrid tools list` does, from here
    python tests/forked.py FOLDER/SOCKET FILE WORD            # does what `python FILE WORD` does

Loading these libraries takes longer than most commands. The server loads them once and forks for every command, which
gets the words, the working directory, the environment and the streams of who asks. Nothing of the project is loaded
before the fork: its code comes from where `PYTHONPATH` says, and is read anew.
"""

import array
import atexit
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import threading

STREAMS = (0, 1, 2)


def ask(path: str, words: list[str]) -> int:
    """Run a command in a process of the server; its exit code."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        server.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", STREAMS))])
        server.sendall(json.dumps([words, os.getcwd(), dict(os.environ)]).encode())
        server.shutdown(socket.SHUT_WR)
        return int(server.recv(16) or b"1")


def serve(path: str) -> None:
    """Fork for each command; returns in the process of a command alone, ready to run it."""
    import langgraph.graph
    import torch
    import torchvision
    from transformers import AutoModelForImageTextToText, AutoProcessor, LlavaForConditionalGeneration, LlavaProcessor
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    get_checkpoint_conversion_mapping("llava")  # The first call compiles a thousand expressions.
    del langgraph, torch, torchvision
    del AutoModelForImageTextToText, AutoProcessor, LlavaForConditionalGeneration, LlavaProcessor
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.write(1, b"ready\n")
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            asked, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                break
            asked.close()
        else:
            shutil.rmtree(os.path.dirname(path))
            os._exit(0)
    command = os.fork()
    if command:
        asked.sendall(b"%d" % os.waitstatus_to_exitcode(os.waitpid(command, 0)[1]))
        os._exit(0)
    become(asked)


def become(asked: socket.socket) -> None:
    """Take over the streams, words, folder and environment of who asks."""
    with asked:
        _, given, _, _ = asked.recvmsg(1, socket.CMSG_SPACE(len(STREAMS) * array.array("i").itemsize))
        streams = array.array("i", given[0][2])
        words, folder, environment = json.loads(b"".join(iter(lambda: asked.recv(1 << 16), b"")))
    for stream, own in zip(streams, STREAMS, strict=True):
        os.dup2(stream, own)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # In the place of the folder of this file: the working folder, or that of the file, then PYTHONPATH.
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
# As at the end of any process, but for taking apart what was loaded, which takes longer than most commands.
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
