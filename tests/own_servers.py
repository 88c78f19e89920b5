"""A program that behaves like the servers that `vllm:` and others start, for tests of starting and stopping.

    write_program(folder)            # a script: set HYBRID_VLLM to it

It takes `--port` and the name of the model, starts a child process as vLLM does, reports on `/health` that it is
loading and then ready, and answers chat completions. Its log names its arguments and the processes.
"""

import sys
from pathlib import Path

SCRIPT = """#!{python} -E
import json, os, subprocess, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

words = sys.argv[1:]
port = int(words[words.index("--port") + 1])
print("arguments", json.dumps(words), flush=True)
print("environment", json.dumps(sorted(os.environ)), flush=True)
if "--broken" in words:
    sys.exit("ValueError: no such parser: " + words[words.index("--broken") + 1])
# As the engine of vLLM, a process that outlives its parent unless its whole group is ended.
engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("processes", os.getpid(), engine.pid, flush=True)
ready = time.monotonic() + float(words[words.index("--seconds") + 1] if "--seconds" in words else 0)
asked = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer({{}}, 200 if time.monotonic() >= ready else 503)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print("asked", body["model"], self.headers["Authorization"], flush=True)
        asked.append(body)
        if "--ends" in words and len(asked) > int(words[words.index("--ends") + 1]):
            print("OutOfMemoryError: CUDA out of memory.", flush=True)
            os._exit(7)
        message = {{"role": "assistant", "content": "Answer: (A)"}}
        usage = {{"prompt_tokens": 100 + 100 * str(body["messages"]).count("data:image"), "completion_tokens": 4}}
        choice = {{"index": 0, "message": message, "finish_reason": "stop"}}
        self.answer({{"model": body["model"], "choices": [choice], "usage": usage}})


ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def write_program(folder: Path, name: str = "vllm") -> Path:
    """Write the executable program; return its path."""
    path = folder / name
    path.write_text(SCRIPT.format(python=sys.executable))
    path.chmod(0o755)
    return path


def processes(log: Path) -> list[int]:
    """Return the process ids in the log of a server."""
    lines = [line.split() for line in log.read_text().splitlines()]
    return [int(word) for line in lines if line[:1] == ["processes"] for word in line[1:]]


def starts(log: Path) -> int:
    """Return how often a server was started with this log."""
    return sum(line.startswith("arguments ") for line in log.read_text().splitlines())
