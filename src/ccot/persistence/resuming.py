"""What a fit has to be to go on from a checkpoint, and what a checkpoint may hold."""

from __future__ import annotations

import json
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import numpy as np

from ccot._version import __version__
from ccot.persistence.checkpoint import CheckpointFolder
from ccot.persistence.digest import digest
from ccot.persistence.registry import stored_types

# The same fit with other numbers of workers, or with more to say, comes to the same result.
_WITHOUT_EFFECT = ("checkpoint", "n_jobs", "random_state", "verbose")
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "POT")


def open_checkpoint(
    estimator: Any, data: tuple[Any, ...], rng: np.random.Generator
) -> CheckpointFolder:
    """Return the checkpoint of a fit; it refuses to go on with a different fit."""
    given = estimator.get_params(deep=False)
    code = [name for name, value in given.items() if callable(value) and name != "verbose"]
    if code:
        raise ValueError(
            f"{code[0]} is a function, and a checkpoint holds no code: use one of its named "
            "choices, or leave checkpoint=None"
        )
    about = {
        "estimator": type(estimator).__name__,
        **{name: str(value) for name, value in given.items() if name not in _WITHOUT_EFFECT},
        "random_state": _seed(given["random_state"], rng),
        "data": sha256(" ".join(map(_digest, data)).encode()).hexdigest(),
        "ccot": __version__,
        **{name: version(name) for name in _LIBRARIES},
    }
    if given.get("device") is not None:
        about["torch"] = version("torch")
    seeded = given["random_state"] is not None
    return CheckpointFolder(given["checkpoint"], about, stored_types(), rng, seeded=seeded)


def _digest(data: Any) -> str:
    return data.digest() if hasattr(data, "digest") else digest(data)


def _seed(random_state: Any, rng: np.random.Generator) -> str:
    """Return what tells where a generator began."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return str(random_state)
    state = json.dumps(rng.bit_generator.state, default=np.ndarray.tolist)
    return f"a generator at {sha256(state.encode()).hexdigest()[:12]}"
