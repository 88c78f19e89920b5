"""Questions asked by the workers of a Ray cluster, on one machine or many.

    messages.py          the messages between the processes
    crew.py              the pool of workers: starts them, distributes questions evenly, replaces lost ones
    engine.py            the run's side: hands out questions, stores replies, retries the questions of a lost worker
    cluster.py           connects to a cluster or starts one, sizes it, and checks that every node runs the same program
    worker.py            an actor that works on several questions at once
    question_handler.py  the handler of a question: the calls that a worker may make to the run
    tools.py             an actor that runs specialists for all workers, and the `Executor` that calls it
    images.py            image bytes by hash: put into the object store once, verified on arrival

Only the run's process writes to the run's folder. A worker receives the run's resolved options (benchmark, tools
offered, wording, trust, frame), so it needs neither the data nor the files that they came from.
"""

import os

# Ray reads this variable when it is imported. Under `uv run`, Ray would copy the whole working directory, including
# data and keys, to every node and into its session folder, and start its workers from there. Nodes have their own
# checkout instead.
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
