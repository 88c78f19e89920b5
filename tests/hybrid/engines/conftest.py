"""Before `ray` itself, as a run does it: the package says how Ray is to start."""

import hybrid.engines.ray  # noqa: F401
