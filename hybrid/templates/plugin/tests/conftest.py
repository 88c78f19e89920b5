"""Where the package is not installed, its things are found in its folder."""

from pathlib import Path

from hybrid.registry import look_also_in, names

if "my_plugin_light" not in names("tools"):
    look_also_in([Path(__file__).parents[1] / "my_plugin"], "tests")
