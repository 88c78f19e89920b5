"""The engine as it is offered in the entry-point group `hybrid.engines`: importing this needs no Ray."""

from __future__ import annotations

from hybrid.config import RunConfig
from hybrid.errors import UsageError, importable, install_extra
from hybrid.running.engine import Opener


def engine(config: RunConfig) -> Opener:
    """The opener of a cluster, which is at `--address` or started for the run.

    Raises:
        UsageError: the package is not installed.
    """
    if not importable("ray"):
        raise UsageError(f"--engine {config.engine} needs the package ray: {install_extra('ray')}")
    from hybrid.engines.ray.engine import on_ray

    return on_ray
