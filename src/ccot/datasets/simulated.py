"""Simulated matrices with known blocks: the latent block model and the four sets D1..D4."""

import tomllib
from importlib import resources
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from ccot.runtime.run import RandomState, as_generator

_FILE = resources.files("ccot.datasets") / "data" / "simulated.toml"
_RECIPES = tomllib.loads(_FILE.read_text(encoding="utf-8"))


def make_latent_blocks(
    block_means: ArrayLike,
    n_rows: int,
    n_columns: int,
    *,
    row_proportions: ArrayLike | None = None,
    column_proportions: ArrayLike | None = None,
    sigma: float = 1.0,
    random_state: RandomState = None,
    rng: Any = None,
) -> Bunch:
    r"""Draw a matrix from the Gaussian latent block model.

    Every row draws a cluster :math:`z_i` and every column a cluster :math:`w_j`; then
    :math:`x_{ij} = \mu_{z_i w_j} + \sigma \varepsilon_{ij}` with standard normal noise.

    Parameters
    ----------
    block_means : array-like of shape (n_row_clusters, n_column_clusters)
        The mean :math:`\mu_{kl}` of each block.
    n_rows, n_columns : int
        Size of the matrix.
    row_proportions, column_proportions : array-like, optional
        Probability of each row (column) cluster, scaled to sum to one. Equal by default.
    sigma : float, default=1.0
        Standard deviation of the noise in every block.
    random_state, rng : int, Generator, RandomState or None
        Seed, by either name; an integer always gives the same matrix.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``, ``row_labels`` and ``column_labels`` (in a small matrix a cluster may come out
        empty), ``block_means``, ``row_proportions``, ``column_proportions``, ``sigma``, ``DESCR``.

    See Also
    --------
    load_simulated : the sets D1..D4 of the literature.

    Examples
    --------
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[1, 5], [5, 1]], 6, 4, sigma=0.1, random_state=0)
    >>> blocks.row_labels
    array([1, 0, 0, 0, 1, 1])
    >>> blocks.data.round()[:, 0]
    array([1., 5., 5., 5., 1., 1.])
    """
    means = np.array(block_means, dtype=float)
    if means.ndim != 2 or means.size == 0:
        raise ValueError(
            "block_means must be a table with one row per row cluster and one column per "
            f"column cluster, but has shape {means.shape}"
        )
    if not np.isfinite(means).all():
        raise ValueError("block_means must be finite")
    n_rows, n_columns = _check_size(n_rows, "n_rows"), _check_size(n_columns, "n_columns")
    row_shares = _check_proportions(row_proportions, means.shape[0], "row_proportions")
    column_shares = _check_proportions(column_proportions, means.shape[1], "column_proportions")
    if isinstance(sigma, bool) or not isinstance(sigma, Real) or not 0 <= sigma < np.inf:
        raise ValueError(f"sigma must be finite and not negative, not {sigma!r}")
    sigma = float(sigma)
    rng = as_generator(random_state, rng)

    # The order of the three draws must not change: it determines the matrix of a seed.
    row_labels = rng.choice(means.shape[0], size=n_rows, p=row_shares)
    column_labels = rng.choice(means.shape[1], size=n_columns, p=column_shares)
    noise = rng.standard_normal((n_rows, n_columns))
    return Bunch(
        data=means[row_labels][:, column_labels] + sigma * noise,
        row_labels=row_labels,
        column_labels=column_labels,
        block_means=means,
        row_proportions=row_shares,
        column_proportions=column_shares,
        sigma=sigma,
        DESCR=(
            f"Gaussian latent block model: {n_rows} x {n_columns}, "
            f"{means.shape[0]} x {means.shape[1]} blocks, noise sigma {sigma:g}."
        ),
    )


def load_simulated(
    name: str,
    random_state: RandomState = None,
    overlap: Literal["published", "calibrated"] = "published",
    sigma: float | None = None,
    *,
    rng: Any = None,
) -> Bunch:
    """Draw one of the four simulated sets of the CCOT paper.

    ====  =========  ======  =========================  ============================
    name  size       blocks  proportions                sigma published / calibrated
    ====  =========  ======  =========================  ============================
    D1    600 x 300  3 x 3   equal                      0.010 / 10.5
    D2    600 x 300  3 x 3   unequal rows and columns   0.015 / 8
    D3    300 x 200  2 x 4   unequal columns            0.020 / 12
    D4    300 x 300  5 x 4   unequal rows               0.015 / 2.2
    ====  =========  ======  =========================  ============================

    Parameters
    ----------
    name : {"D1", "D2", "D3", "D4"}
        Which set.
    random_state, rng : int, Generator, RandomState or None
        Seed, by either name; an integer always gives the same matrix.
    overlap : {"published", "calibrated"}, default="published"
        Noise level. With the published noise, K-means makes no error. With the calibrated noise,
        block models with given numbers of clusters make errors as large as those in the paper.
    sigma : float, optional
        Standard deviation of the noise; overrides `overlap`.

    Returns
    -------
    sklearn.utils.Bunch
        As `make_latent_blocks` returns it, and ``name``.

    References
    ----------
    .. [1] Laclau et al. (2017), as in :class:`ccot.CCOT`.

    Examples
    --------
    >>> from ccot.datasets import load_simulated
    >>> blocks = load_simulated("D3", random_state=0)
    >>> blocks.data.shape, blocks.block_means.shape, blocks.sigma
    ((300, 200), (2, 4), 0.02)
    """
    if name not in _RECIPES:
        raise ValueError(f"unknown simulated set {name!r}: choose one of {', '.join(_RECIPES)}")
    recipe = _RECIPES[name]
    if overlap not in recipe["sigma"]:
        raise ValueError(f"overlap must be 'published' or 'calibrated', not {overlap!r}")
    noise = {"sigma": recipe["sigma"][overlap] if sigma is None else sigma}
    blocks = make_latent_blocks(**recipe | noise, random_state=random_state, rng=rng)
    blocks.name = name
    blocks.DESCR = f"Simulated set {name} of the CCOT paper. {blocks.DESCR}"
    return blocks


def _check_size(size: int, name: str) -> int:
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ValueError(f"{name} must be a positive integer, not {size!r}")
    return int(size)


def _check_proportions(proportions: ArrayLike | None, n_clusters: int, name: str) -> np.ndarray:
    equal = np.full(n_clusters, 1 / n_clusters)
    shares = equal if proportions is None else np.asarray(proportions, dtype=float)
    if shares.shape != (n_clusters,):
        raise ValueError(
            f"{name} must have one entry for each of the {n_clusters} clusters, "
            f"but has shape {shares.shape}"
        )
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise ValueError(f"{name} must be finite, not negative and not all zero")
    return shares / shares.sum()
