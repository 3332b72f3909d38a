"""Co-clustering through optimal transport."""

from ccot._version import __version__

__all__ = ["__version__"]
