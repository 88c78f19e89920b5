"""The pages of environment variables and exit codes."""

from __future__ import annotations

from _reference.markdown import Page, code, escaped, table
from hybrid.cli._exit_codes import EXIT_CODES
from hybrid.config.environment import VARIABLES
from hybrid.models.providers import PROVIDERS


def environment() -> tuple[Page, ...]:
    """Return the page of environment variables: the project's own, and those with keys and addresses of providers."""
    variables = table(("variable", "what it says"), [(code(one.name), escaped(one.about)) for one in VARIABLES])
    providers = table(
        ("`--model`", "key", "address"),
        [
            (code(f"{name}:..."), _either(one.key_env) or "none is needed", _either(one.url_env) or code("--base-url"))
            for name, one in PROVIDERS.items()
        ],
    )
    text = f"""# Environment variables

An option on the command line overrides a file of `--config`, and the file overrides the environment.

{variables}

## Keys and addresses of models

If a row names several variables, the first one that is set is used. Keys are never written: neither to a run's folder
nor to a log.

{providers}
"""
    return (Page("reference/environment.md", "Environment variables", text),)


def exit_codes() -> tuple[Page, ...]:
    """Return the page with the meaning of each exit code."""
    rows = [(code(str(number)), escaped(said)) for number, said in EXIT_CODES.items()]
    text = f"""# Exit codes

They are the same for every command.

{table(("code", "what it says"), rows)}
"""
    return (Page("reference/exit-codes.md", "Exit codes", text),)


def _either(variables: tuple[str, ...]) -> str:
    return " or ".join(map(code, variables))
