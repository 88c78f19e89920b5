"""Models whose weights are loaded into this process (`hf:`)."""

from importlib.util import find_spec

from hybrid.errors import UsageError, needs_package


def refuse_without_local(name: str) -> None:
    """Raise `UsageError` for a model in this process where a package that loads its weights is not installed."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise UsageError(needs_package(f"--model {name}", package))
