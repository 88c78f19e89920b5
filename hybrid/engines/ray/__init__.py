"""Questions asked by the workers of a Ray cluster, on one machine or many.

    messages.py   what crosses between the processes
    crew.py       the workers of a run: started at once, used evenly, replaced when they are lost
    engine.py     the run's side: gives out questions, keeps replies, asks again what a lost worker had in flight
    cluster.py    the cluster: found or started, how many workers it gets, whether they run the same program
    worker.py     an actor that asks questions, several at once
    desk.py       what a worker may ask of the run, or tell it
    tools.py      an actor that runs specialists for all of them, and the `Executor` that reaches it
    images.py     bytes of images by their hash: put into the object store once, checked where they arrive

The run's process alone writes to the run's folder. A worker is given what the run has resolved (benchmark, tools
offered, wording, trust, frame), so that it needs neither the data nor the files that these came from.
"""

import os

# Read when `ray` is imported. Under `uv run` Ray would copy the whole working directory, data and keys that lie in it
# included, to every node and into its session folder, and start its workers from there; nodes have their own checkout.
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
