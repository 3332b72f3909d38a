r"""Potentials of points that were not part of the transport problem.

A solved problem gives every possible point a scaling in closed form: one more row scaling step,

.. math:: \log \alpha(x) = \log a - \log \sum_j \beta_j e^{-\lambda c(x, y_j)},

so new rows and columns are placed without solving anything again.
"""

from __future__ import annotations

import math

import numpy as np


def extend_scaling(log_kernel: np.ndarray, log_anchor_scaling: np.ndarray, mass: float):
    """Scale new points against anchors whose scaling is known.

    Examples
    --------
    >>> import numpy as np
    >>> extend_scaling(np.zeros((1, 4)), np.zeros(4), mass=4.0)
    array([0.])
    """
    terms = log_kernel + log_anchor_scaling
    top = terms.max(axis=-1, keepdims=True)
    terms -= top
    return math.log(mass) - top[..., 0] - np.log(np.exp(terms, out=terms).sum(axis=-1))
