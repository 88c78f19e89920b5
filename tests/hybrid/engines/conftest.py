"""Runs before `ray` is imported, as in a run: the package decides how Ray starts."""

import hybrid.engines.ray  # noqa: F401
