"""Where to start: fine clusters of rows and columns from leading singular vectors."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ccot.blocks.problem import BlockProblem, Blocks, make_blocks
from ccot.blocks.products import n_entries
from ccot.blocks.spectrum import MAX_RANK, leading_vectors, noise_level, rank_to_look_at, shrink
from ccot.blocks.sweep import sweep
from ccot.runtime.run import Run, counted
from ccot.runtime.types import Matrix

Scores = tuple[np.ndarray, np.ndarray]

_MIN_SEGMENTS, _MAX_SEGMENTS = 16, 40
_SWEEPS, _TOL = 6, 1e-2
# Matrices with more entries are decomposed in float32, which takes half of the memory.
_NARROW_ENTRIES = 2**27
# Matrices with no more entries are not worth a device; and where points are equal, as words of one
# text are, K-means follows the last digit of their scores.
_HERE_ENTRIES = 2**22
# Rounds of K-means: the sweeps that follow do the fine work.
_ROUNDS = 5
# Weight of the first direction below the noise, relative to the strongest one: faint clusters.
_FAINT = 0.25


def over_segment(
    problem: BlockProblem, n_init: int, run: Run, max_iter: int = _SWEEPS
) -> list[Blocks]:
    """Return fine co-clusterings to start from, swept until little moves."""
    keep, rng = run.checkpoint.piece, run.rng
    scores = keep("scores", partial(embed, problem, rng))

    def segments() -> Scores:
        return segment(scores[0], rng), segment(scores[1], rng)

    def start(partition: Scores) -> Blocks:
        return sweep(problem, make_blocks(problem, *partition), max_iter=max_iter, tol=_TOL)

    partitions = [keep("segments", segments) for _ in range(n_init)]
    return [
        keep("start", partial(start, partition))
        for partition in counted(partitions, "starts", run.progress)
    ]


def embed(problem: BlockProblem, rng: np.random.Generator) -> Scores:
    """Return scores of rows and of columns on what of the singular vectors is signal."""
    if n_entries(problem.axes[0].values) <= _HERE_ENTRIES:
        problem = problem.on_host()
    embed_values = _embed_real if problem.family == "gaussian" else _embed_counts
    return embed_values(problem, rng)


def _embed_counts(problem: BlockProblem, rng: np.random.Generator) -> Scores:
    """Scale by degrees, regularised so that short rows do not dominate; keep directions only."""
    axis_view, backend = problem.axes[0], problem.backend
    scales = _degree_scale(axis_view.values, 1), _degree_scale(axis_view.values, 0)
    if sp.issparse(axis_view.values):
        scaled, transposed = _scale_sparse(problem, *scales)
    else:
        scaled, transposed = backend.send(scales[0])[:, None] * axis_view.on_device.values, None
        scaled *= backend.send(scales[1])
    left, singular, right = leading_vectors(scaled, MAX_RANK + 1, rng, backend, transposed)
    return _unit(left * singular), _unit(right * singular)


def _scale_sparse(
    problem: BlockProblem, row_scale: np.ndarray, column_scale: np.ndarray
) -> tuple[sp.csr_array, sp.csr_array | None]:
    """Scale a sparse matrix; for a device also as it is kept by columns."""
    rows, columns = problem.axes
    scaled = _scale_entries(rows.values, row_scale, column_scale)
    if problem.backend.device is None:
        return scaled, None
    return scaled, _scale_entries(columns.values, column_scale, row_scale)


def _scale_entries(
    values: sp.csr_array, row_scale: np.ndarray, column_scale: np.ndarray
) -> sp.csr_array:
    """Scale rows and columns; the places of the entries are shared, not copied."""
    dtype = np.float32 if values.nnz > _NARROW_ENTRIES else np.float64
    data = column_scale.astype(dtype).take(values.indices)
    data *= values.data
    data *= np.repeat(row_scale.astype(dtype), np.diff(values.indptr))
    return sp.csr_array((data, values.indices, values.indptr), shape=values.shape)


def _degree_scale(values: Matrix, axis: int) -> np.ndarray:
    degree = np.asarray(values.sum(axis=axis), dtype=np.float64).ravel()
    return 1.0 / np.sqrt(degree + 0.5 * degree.mean() + 1e-300)


def _unit(scores: np.ndarray) -> np.ndarray:
    return scores / np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1e-12)


def _embed_real(problem: BlockProblem, rng: np.random.Generator) -> Scores:
    """Shrink singular values for the estimated noise; missing entries are filled by the mean."""
    axis_view, backend = problem.axes[0], problem.backend
    spread = np.sqrt(np.maximum(axis_view.partner_exposure, 1e-300))
    if sp.issparse(axis_view.values):
        values, transposed = _scale_sparse(problem, np.ones(len(axis_view)), 1 / spread)
        left, singular, right = leading_vectors(values, MAX_RANK, rng, backend, transposed)
        return left * singular, right * singular
    # Most matrices have no weights, and a copy of the largest ones is not to be had for nothing.
    axis_view, spread = axis_view.on_device, backend.send(spread)
    values = axis_view.values if bool((spread == 1).all()) else axis_view.values / spread
    if axis_view.observed is not None:
        values = backend.xp.where(axis_view.observed > 0, values, problem.overall * spread)
    left, singular, right = leading_vectors(values, rank_to_look_at(values.shape), rng, backend)
    shrunk = shrink(singular, values.shape, noise_level(values, singular))
    rank = min(int(np.sum(shrunk > 0)) + 1, len(shrunk), MAX_RANK)
    faint = singular[:rank] * (_FAINT * shrunk[0] / singular[0] if shrunk[0] > 0 else 1.0)
    weight = np.maximum(shrunk[:rank], faint)
    return left[:, :rank] * weight, right[:, :rank] * weight


def segment(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cut one side finely by K-means; the sweeps that follow do the fine work."""
    n_points = len(scores)
    wanted = max(_MIN_SEGMENTS, int(np.ceil(2 * np.sqrt(n_points))))
    n_clusters = min(n_points, wanted, _MAX_SEGMENTS)
    if n_clusters < 2 or np.ptp(scores, axis=0).max() == 0:
        return np.zeros(n_points, dtype=np.int64)
    seed = int(rng.integers(2**31))
    means = KMeans(n_clusters, init="random", n_init=1, max_iter=_ROUNDS, random_state=seed)
    with warnings.catch_warnings():
        # Equal points make fewer clusters than asked for, and fewer is what is wanted then.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return means.fit_predict(scores)
