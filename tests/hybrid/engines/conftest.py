"""Import the engine's package before `ray`, as a run does: the package sets how Ray starts."""

import hybrid.engines.ray  # noqa: F401
