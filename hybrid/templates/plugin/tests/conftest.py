"""If the package is not installed, its plug-ins are found in its folder."""

from pathlib import Path

from hybrid.plugins.discovery import add_search_path
from hybrid.plugins.registry import names

if "my_plugin_light" not in names("tools"):
    add_search_path([Path(__file__).parents[1] / "my_plugin"], "tests")
