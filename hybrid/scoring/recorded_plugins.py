"""Plug-ins that a run used, found again in the folders that its manifest names.

    missing = find_plugins(folder)
    missing["tools/redness"]       # "no folder /home/me/own; --path DIR names another"

Rules are stored with their tools, so without the tools their output cannot be judged. A folder is searched only if the
hash of its code equals the hash in the manifest, so a run from elsewhere cannot name code of its own. Plug-ins found by
`--path` or `$HYBRID_TOOL_PATH` take precedence and are not checked. If several runs used different code under one name,
only the first run's plug-in is found, and the plug-in counts as missing for the other runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid.core.errors import HybridError, UsageError
from hybrid.display.notes import tell
from hybrid.log.folder import RunFolder
from hybrid.log.manifest import PLUGINS
from hybrid.plugins.discovery import KINDS, TOOLS, add_search_path, find_origins, folder_hash, option_of, origin_facts

# Prefix that distinguishes the keys of routes from the keys of tools.
ROUTE = "route "
_PACKAGES = {kind.folder: kind.package for kind in KINDS}
# The name of the option under which folders of manifests are searched.
MANIFEST = "the manifest's path"
# Notes that were already printed. Several sections look for the same plug-ins, so each note is printed only once.
_NOTED: set[str] = set()


def find_plugins(folder: RunFolder) -> dict[str, str]:
    """Search the folders that the run's manifest names; return by `folder/name` why a plug-in is missing."""
    missing: dict[str, str] = {}
    recorded: Mapping[str, Mapping[str, Any]] = folder.manifest.get(PLUGINS, {})
    for plugin, facts in recorded.items():
        kind, _, name = plugin.partition("/")
        package = _PACKAGES.get(kind)
        if package is None:
            continue
        if name in find_origins(package):
            if reason := _other_code(plugin, package, facts, folder.path):
                missing[plugin] = reason
            continue
        try:
            _look_in(folder, facts)
        except (HybridError, OSError) as error:
            missing[plugin] = str(error)
            continue
        if name not in find_origins(package):
            missing[plugin] = f"{facts['path']} no longer offers {name}"
        else:
            tell(f"note: {plugin} is read from {facts['path']}, which the manifest of {folder.path} names")
    return missing


def find_lost_rules(folder: RunFolder) -> dict[str, str]:
    """Return why rules are missing, by the name of their tool and by each route that the tool served in the run."""
    recorded = folder.manifest.get(PLUGINS, {})
    missing: dict[str, str] = {}
    for plugin, cause in find_plugins(folder).items():
        kind, _, name = plugin.partition("/")
        if kind == TOOLS:
            reason = f"the rules of {name} are missing: {cause}"
            missing |= dict.fromkeys(
                (name, *(f"{ROUTE}{route}" for route in recorded[plugin].get("routes", ()))), reason
            )
    return missing


def find_changed_rules(folder: RunFolder) -> dict[str, str]:
    """Return why rules are not those of the run, by tool and by route as in `find_lost_rules`.

    The user chose their code by `--path` or `$HYBRID_TOOL_PATH`.
    """
    recorded = folder.manifest.get(PLUGINS, {})
    changed: dict[str, str] = {}
    for plugin, facts in recorded.items():
        kind, _, name = plugin.partition("/")
        if kind == TOOLS and (root := _other_root(plugin, TOOLS, facts)) and option_of(Path(root)) != MANIFEST:
            reason = f"{name} is read from {root}, whose code is not that of the run"
            changed |= dict.fromkeys((name, *(f"{ROUTE}{route}" for route in facts.get("routes", ()))), reason)
    return changed


def _other_root(plugin: str, package: str, facts: Mapping[str, Any]) -> str:
    """Return the folder that offers a plug-in with other code than the run's, else ""."""
    current = origin_facts([(package, plugin.partition("/")[2])]).get(plugin, {})
    return "" if current.get("sha256") in (None, facts.get("sha256")) else str(current["path"])


def _other_code(plugin: str, package: str, facts: Mapping[str, Any], run: Path) -> str:
    """Return the reason if other code of this name comes from a manifest's folder, else "".

    If it comes from `--path` or `$HYBRID_TOOL_PATH`, print a note instead.
    """
    if not (root := _other_root(plugin, package, facts)):
        return ""
    of_manifest = option_of(Path(root)) == MANIFEST
    if of_manifest and root != facts.get("path"):
        return (
            f"{root}, which another run names, offers it with other code; compare the runs by separate commands, or "
            "use one code for both by --path DIR"
        )
    if of_manifest:
        return f"{root} has changed since the run; --path DIR uses it as it is now"
    if (note := f"note: {plugin} is read from {root}, whose code is not that of {run}") not in _NOTED:
        _NOTED.add(note)
        tell(note)
    return ""


def _look_in(folder: RunFolder, facts: Mapping[str, Any]) -> None:
    if "path" not in facts:
        raise UsageError(f"the package {facts.get('package')} is not installed")
    root = Path(str(facts["path"]))
    if not root.is_absolute() or root.resolve().is_relative_to(folder.path.resolve()):
        raise UsageError(f"{root} is not a folder outside the run")
    if not root.is_dir():
        raise UsageError(f"no folder {root}; --path DIR names another")
    if folder_hash(root) != facts.get("sha256"):
        raise UsageError(f"{root} has changed since the run; --path DIR uses it as it is now")
    add_search_path([root], MANIFEST)
