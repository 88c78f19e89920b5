"""`--engine local|ray`: who asks the questions of a run (the seam is `hybrid/running/engine.py`).

    carry_out(run, progress, tell, opener_of(config))

`local` is the process of the run itself. Everything else is one folder here, imported only when it is named.
"""

from __future__ import annotations

from importlib.util import find_spec

from hybrid.config import RunConfig
from hybrid.errors import UsageError, install_extra
from hybrid.running.engine import Opener, here


def opener_of(config: RunConfig) -> Opener:
    """The function that opens the engine that was named.

    Raises:
        UsageError: an address without an engine that has one, or the package of the engine is not installed.
    """
    if config.engine == "local":
        if config.address is not None:
            raise UsageError(f"--address {config.address} says where a Ray cluster is: give --engine ray with it")
        return here
    if find_spec("ray") is None:
        raise UsageError(f"--engine ray needs the package ray: {install_extra('ray')}")
    from hybrid.engines.ray.engine import on_ray

    return on_ray
