"""`python -m hybrid`: the same program as the console script `hybrid`."""

from hybrid.cli import main

main()
