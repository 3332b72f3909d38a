"""One way from a ``random_state`` to a generator."""

from __future__ import annotations

from numbers import Integral

import numpy as np

RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for a seed, a generator, a legacy RandomState or None.

    Examples
    --------
    >>> int(as_generator(0).integers(100))
    85
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None or isinstance(random_state, Integral | np.random.Generator):
        return np.random.default_rng(random_state)
    raise ValueError(
        "random_state must be an integer, a numpy Generator or RandomState, or None, "
        f"not {random_state!r}"
    )
