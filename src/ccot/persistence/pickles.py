"""Pickles that only the version that wrote them can read."""

import pickle
from typing import Any

from ccot._version import __version__

_KEY = "_ccot_version"


class VersionedPickle:
    """Mixin of estimators: their pickles contain the version, and other versions refuse them."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle, with the version."""
        state: Any = super().__getstate__()
        return {**state, _KEY: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the state from a pickle, if this version wrote it."""
        state = dict(state)
        made_by = state.pop(_KEY, "an earlier version")
        if made_by != __version__:
            problem = f"this {type(self).__name__} was pickled by ccot {made_by}, and this is"
            remedy = "load it there and call save(), whose files later versions can read"
            raise pickle.UnpicklingError(f"{problem} {__version__}: {remedy}")
        super().__setstate__(state)  # type: ignore[misc]
