"""`python -m hybrid`: the same program as the console script `hybrid`, from any directory."""

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]

# `-m` looks in the working directory first: a package there that is called `tools` or `graphs` would be imported
# instead of the project's.
if not sys.flags.safe_path and sys.path[0] in ("", str(Path.cwd())) and Path.cwd() != PROJECT:
    del sys.path[0]

from hybrid.cli import main  # noqa: E402 - imported after the path was corrected

main()
