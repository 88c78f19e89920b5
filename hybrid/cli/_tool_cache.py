"""`hybrid tools cache`: the tool outputs cached on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hybrid.cli import _option_types as types

if TYPE_CHECKING:
    from hybrid.serving.cache import FindingCache


def open_cache(*, keeps: bool = True) -> FindingCache:
    """Open the cache that all runs of this user share, or, if `keeps` is False, a cache that stores no tool output."""
    from hybrid.core.images import ImageStore, home
    from hybrid.serving.cache import FindingCache

    store = ImageStore(home() / "images")
    return FindingCache(home() / "findings" if keeps else None, store)


@click.group("cache", invoke_without_command=True)
@click.pass_context
def cache(context: click.Context) -> int:
    """Show or prune the cache of tool outputs, which all runs share. Without a command, print its size."""
    return 0 if context.invoked_subcommand else context.invoke(show_cache)


@cache.command("show")
def show_cache() -> int:
    """Print the path and the size of the cache."""
    from hybrid.serving.cache import size

    findings = open_cache()
    usage = size(findings)
    click.echo(f"{findings.folder}")
    click.echo(f"{usage.findings:,} tool outputs, {usage.findings_bytes / 1e6:,.1f} MB")
    click.echo(f"{usage.pictures:,} pictures, {usage.pictures_bytes / 1e6:,.1f} MB")
    return 0


@cache.command("prune")
@click.option(
    "--older-than", type=types.FROM_0, required=True, metavar="DAYS", help="Age in days; 0 removes everything."
)
def prune_cache(older_than: float) -> int:
    """Remove tool outputs written more than DAYS ago, and their pictures."""
    from hybrid.serving.cache import prune

    click.echo(f"removed {prune(open_cache(), older_than):,} tool outputs")
    return 0
