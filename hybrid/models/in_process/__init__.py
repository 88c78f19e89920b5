"""Models whose weights are loaded into this process (`hf:`)."""

from hybrid.core.errors import UsageError, importable, needs_package


def refuse_without_local(name: str) -> None:
    """Raise `UsageError` for a model in this process if a package for loading its weights is not installed."""
    for package in ("torch", "transformers"):
        if not importable(package):
            raise UsageError(needs_package(f"--model {name}", package))
