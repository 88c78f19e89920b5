"""The source of small tools that tests write to a folder, to be imported in another process or on another node."""

from textwrap import indent

MODULE = '''"""{name}, for tests."""
{head}
from hybrid.tool import Args, BackendCard, Card, Evidence, Need, Picture, Tool


class OwnArgs(Args):
    """Those that the test wants."""

{args}


class Backend:
    def setup(self, device, weights):
{setup}

    def run(self, requests):
{run}


CARD = Card("{name}", "Says of an image what the test wants.", "Is for tests.", (BackendCard({backend}),), {images})
TOOL = Tool(CARD, OwnArgs)
'''


def tool_source(
    name: str,
    run: str,
    *,
    args: str = "",
    head: str = "",
    setup: str = "pass",
    backend: str = '"classical", "1", Backend, "Is for tests."',
    images: tuple[int, int] = (1, 1),
) -> str:
    """Return a module with a `TOOL` of that name.

    Args:
        name: name of the tool.
        run: the body of the backend's `run`, which is given `requests`.
        args: fields of its arguments.
        head: the first lines of the module.
        setup: the body of the backend's `setup`, which is given `device` and `weights`.
        backend: arguments of its `BackendCard`; `Backend` is the class.
        images: fewest and most images of a call.
    """
    bodies = {"args": indent(args, " " * 4), "setup": indent(setup, " " * 8), "run": indent(run, " " * 8)}
    return MODULE.format(name=name, head=head, backend=backend, images=images, **bodies)
