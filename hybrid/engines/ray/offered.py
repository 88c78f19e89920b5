"""The engine's entry point in the group `hybrid.engines`; importing it does not need Ray."""

from __future__ import annotations

from hybrid.config import RunConfig
from hybrid.core.errors import UsageError, importable, install_extra
from hybrid.running.engine import Opener


def engine(config: RunConfig) -> Opener:
    """Return the opener of a cluster: the one at `--address`, or one started for the run.

    Raises:
        UsageError: the package is not installed.
    """
    if not importable("ray"):
        raise UsageError(f"--engine {config.engine} needs the package ray: {install_extra('ray')}")
    from hybrid.engines.ray.engine import on_ray

    return on_ray
