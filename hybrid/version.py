"""The version of this program, as recorded in manifests and printed by `hybrid --version`."""

__version__ = "0.1.0"
