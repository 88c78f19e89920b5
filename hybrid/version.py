"""The version of this program, as manifests and `hybrid --version` have it."""

__version__ = "0.1.0"
