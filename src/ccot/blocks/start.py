"""Starts of the search: fine clusters of rows and columns from leading singular vectors."""

import warnings
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ccot.blocks.axes import degrees, n_entries
from ccot.blocks.problem import BlockProblem, Blocks, make_blocks
from ccot.blocks.spectrum import MAX_RANK, leading_vectors, noise_level, rank_to_look_at, shrink
from ccot.blocks.sweep import sweep
from ccot.runtime import device_csr, host_csr
from ccot.runtime.backends import is_device_csr, namespace, one_blas_thread, to_numpy
from ccot.runtime.run import Run, counted
from ccot.runtime.types import Array

Scores = tuple[Array, Array]

_MIN_SEGMENTS, _MAX_SEGMENTS = 16, 40
_SWEEPS, _TOL = 6, 1e-2
# Matrices with more entries are decomposed in float32, which takes half of the memory.
_NARROW_ENTRIES = 2**27
# Matrices with at most so many entries are not worth a device. Also, if points are equal (words of
# one text), K-means depends on the last digit of their scores.
HERE_ENTRIES = 2**22
# Rounds of K-means, its tolerance, and the size of the sample that its centres are fitted to.
_ROUNDS, _KMEANS_TOL, _SAMPLE = 5, 1e-4, 2**14
# Relative weight of the first direction below the noise, which may show faint clusters.
_FAINT = 0.25


def over_segment(
    problem: BlockProblem, n_init: int, run: Run, max_iter: int = _SWEEPS
) -> list[Blocks]:
    """Return fine co-clusterings to start from, swept until little moves."""
    scores, rng = run.checkpoint.piece("scores", partial(embed, problem, run.rng)), run.rng

    def start(partition: Scores) -> Blocks:
        return sweep(problem, make_blocks(problem, *partition), max_iter=max_iter, tol=_TOL)

    seeds = [(draw_seed(scores[0], rng), draw_seed(scores[1], rng)) for _ in range(n_init)]
    # Rows first: they take longer if there are more of them.
    tasks = [(axis, pair[axis]) for axis in (0, 1) for pair in seeds]
    # Several K-means at once may restore warnings and BLAS threads wrongly: this restores them.
    with one_blas_thread(), warnings.catch_warnings():
        made = run.each("segments", lambda task: segment(scores[task[0]], task[1]), tasks)
        segments = list(made)
    partitions = list(zip(segments[:n_init], segments[n_init:], strict=True))
    made = run.each("start", start, partitions)
    return list(counted(made, "starts", run.progress, n_init))


def embed(problem: BlockProblem, rng: np.random.Generator) -> Scores:
    """Return scores of rows and of columns on leading singular vectors."""
    values = problem.axes[0].values
    if n_entries(values) <= HERE_ENTRIES and not is_device_csr(values):
        problem = problem.on_host()
    embed_values = _embed_real if problem.family == "gaussian" else _embed_counts
    return embed_values(problem, rng)


def _embed_counts(problem: BlockProblem, rng: np.random.Generator) -> Scores:
    """Return scores of unit length, scaled by degrees so that short rows do not dominate."""
    axis_view, backend = problem.axes[0], problem.backend
    if problem.family == "poisson":
        # Exposures are degrees divided by the root of their sum, so they add up to that root.
        sums = [side * side.sum() for side in (axis_view.exposure, axis_view.partner_exposure)]
    else:
        sums = degrees(axis_view.values, axis_view.backend)
    scales = [1.0 / np.sqrt(degree + 0.5 * degree.mean() + 1e-300) for degree in sums]
    if not isinstance(axis_view.values, np.ndarray):
        values, transposed = _scale_sparse(problem, *scales)
    else:
        values, transposed = backend.send(scales[0])[:, None] * axis_view.on_device.values, None
        values *= backend.send(scales[1])
    left, singular, right = leading_vectors(values, MAX_RANK + 1, rng, backend, transposed)
    weight = backend.send(singular)
    sides = (backend.by_rows(lambda part: _unit(part * weight), side) for side in (left, right))
    # Counts that came on a device are segmented there too.
    rows, columns = sides if is_device_csr(axis_view.values) else map(to_numpy, sides)
    return rows, columns


def _scale_sparse(
    problem: BlockProblem, row_scale: np.ndarray, column_scale: np.ndarray
) -> tuple[Any, Any]:
    """Return a scaled sparse matrix; on a device, also its transpose in CSR format (else None)."""
    rows, columns = problem.axes
    backend, send = problem.backend, problem.backend.send
    if is_device_csr(rows.values):
        scales = send(row_scale), send(column_scale)
        by_row = device_csr.scaled(rows.values, *scales)
        return by_row, device_csr.scaled(columns.values, *scales[::-1])
    dtype = np.float32 if n_entries(rows.values) > _NARROW_ENTRIES else np.float64
    row_scale, column_scale = row_scale.astype(dtype), column_scale.astype(dtype)
    by_row = host_csr.scaled(rows.values, row_scale, column_scale, backend)
    if backend.device is None:
        return by_row, None
    return send(by_row), send(host_csr.scaled(columns.values, column_scale, row_scale, backend))


def _unit(scores: Array) -> Array:
    xp = namespace(scores)
    norm = xp.linalg.vector_norm(scores, axis=1, keepdims=True)
    return scores / xp.clip(norm, 1e-12, None)


def _embed_real(problem: BlockProblem, rng: np.random.Generator) -> Scores:
    """Return scores; of dense values, missing ones become the mean, singular values are shrunk."""
    axis_view, backend = problem.axes[0], problem.backend
    spread = np.sqrt(np.maximum(axis_view.partner_exposure, 1e-300))
    if sp.issparse(axis_view.values):
        values, transposed = _scale_sparse(problem, np.ones(len(axis_view)), 1 / spread)
        left, singular, right = leading_vectors(values, MAX_RANK, rng, backend, transposed)
        return to_numpy(left) * singular, to_numpy(right) * singular
    # Most matrices have no weights, and a copy of a large matrix takes much memory.
    axis_view, spread = axis_view.on_device, backend.send(spread)
    values = axis_view.values if bool((spread == 1).all()) else axis_view.values / spread
    if axis_view.observed is not None:
        values = backend.xp.where(axis_view.observed > 0, values, problem.overall * spread)
    left, singular, right = leading_vectors(values, rank_to_look_at(values.shape), rng, backend)
    shrunk = shrink(singular, values.shape, noise_level(values, singular))
    rank = min(int(np.sum(shrunk > 0)) + 1, len(shrunk), MAX_RANK)
    faint = singular[:rank] * (_FAINT * shrunk[0] / singular[0] if shrunk[0] > 0 else 1.0)
    weight = np.maximum(shrunk[:rank], faint)
    return to_numpy(left[:, :rank]) * weight, to_numpy(right[:, :rank]) * weight


def draw_seed(scores: Array, rng: np.random.Generator) -> int | None:
    """Return a seed for :func:`segment`; None for points that are all equal."""
    return int(rng.integers(2**31)) if bool((scores != scores[0]).any()) else None


def n_segments(n_points: int) -> int:
    """Return the number of fine clusters for this many points; equal points make fewer."""
    wanted = max(_MIN_SEGMENTS, int(np.ceil(2 * np.sqrt(n_points))))
    return min(n_points, wanted, _MAX_SEGMENTS)


def segment(scores: Array, seed: int | None) -> np.ndarray:
    """Return fine clusters of one side by a few rounds of K-means; sweeps improve them later."""
    n_points = len(scores)
    if seed is None:
        return np.zeros(n_points, dtype=np.int64)
    n_clusters, sample = n_segments(n_points), scores
    if n_points > _SAMPLE:
        chosen = np.random.RandomState(seed).choice(n_points, _SAMPLE, replace=False)
        sample = scores[np.sort(chosen).tolist()]
    if not isinstance(scores, np.ndarray):
        return to_numpy(_segment_on_device(scores, sample, n_clusters, seed))
    means = KMeans(n_clusters, init="random", n_init=1, max_iter=_ROUNDS, random_state=seed)
    with one_blas_thread(), warnings.catch_warnings():
        # Equal points make fewer clusters than asked for, as they should.
        warnings.simplefilter("ignore", ConvergenceWarning)
        means.fit(sample)
        return means.labels_ if sample is scores else means.predict(scores)


def _segment_on_device(scores: Array, sample: Array, n_clusters: int, seed: int) -> Array:
    """Return clusters by the algorithm of scikit-learn's K-means, on the device of the scores."""
    xp, n_points = namespace(scores), len(sample)
    share = np.full(n_points, 1 / n_points)
    chosen = np.random.RandomState(seed).choice(n_points, n_clusters, replace=False, p=share)
    middle = xp.mean(sample, axis=0)
    sample = sample - middle
    centres = sample[chosen.tolist()]
    little = _KMEANS_TOL * float(xp.mean(xp.var(sample, axis=0)))

    def nearest(points: Array) -> Array:
        return xp.argmin(xp.sum(centres**2, axis=1) - 2 * (points @ centres.T), axis=1)

    for _ in range(_ROUNDS):
        members = device_csr.shares(nearest(sample), n_clusters, scores.dtype)
        sizes = xp.clip(xp.sum(members, axis=0), 1.0, None)[:, None]
        last, centres = centres, members.T @ sample / sizes
        if float(xp.sum((centres - last) ** 2)) <= little:
            break
    return nearest(scores - middle)
