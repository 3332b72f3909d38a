"""Blocks of matrices with very many points on one side and few on the other.

A search costs as much for every point whether it has two values or a thousand. So a sample of the
longer side is searched for blocks, every other point is placed on them, and all are swept a few
times more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ccot.blocks.fit import (
    BlockCoclustering,
    BlockSettings,
    Search,
    finish,
    prepare_problem,
    search_blocks,
)
from ccot.blocks.placement import place_side
from ccot.blocks.preparation import choose_preparation, settle_family, with_effects
from ccot.blocks.problem import BlockProblem, Blocks, make_blocks
from ccot.blocks.sweep import sweep
from ccot.runtime.backends import choose_backend
from ccot.runtime.run import Run
from ccot.runtime.types import Matrix

# More points than this on one side, with no more than so many values each, are searched by a
# sample of the given size.
MANY_POINTS, FEW_VALUES, SAMPLE = 2**17, 2**8, 2**13
_SWEEPS, _TOL = 4, 1e-3


def is_lopsided(X: Matrix, settings: BlockSettings) -> bool:
    """Return True if a sample of the longer side is enough to find the blocks."""
    lopsided = max(X.shape) > MANY_POINTS and min(X.shape) <= FEW_VALUES
    return isinstance(X, np.ndarray) and lopsided and not settings.balanced


def fit_lopsided(
    X: np.ndarray, family: str, settings: BlockSettings, run: Run
) -> BlockCoclustering:
    """Co-cluster a matrix by the blocks of a sample; see :func:`~ccot.blocks.fit.fit_blocks`."""
    axis = int(np.argmax(X.shape))
    chosen = np.sort(run.rng.choice(X.shape[axis], SAMPLE, replace=False))
    run.progress(f"{SAMPLE} of {X.shape[axis]} {('rows', 'columns')[axis]} are searched for blocks")
    sample = np.take(X, chosen, axis=axis)
    name, reason = settle_family(sample, family, settings.scale, settings.center)
    found = search_blocks(sample, name, settings, run)
    whole = _bring_all(X, axis, chosen, found, settings)
    return replace(finish(X, whole, settings), family_reason=reason)


def _bring_all(
    X: np.ndarray, axis: int, chosen: np.ndarray, found: Search, settings: BlockSettings
) -> Search:
    """Return a search of the sample with all points of the longer side placed and swept."""
    preparation = choose_preparation(X, found.problem.family, settings.scale)
    preparation = with_effects(preparation, X, found.preparation.center)
    preparation = replace(preparation, sentence=found.preparation.sentence)
    backend = choose_backend(settings.device, "float64")
    problem = prepare_problem(X, preparation, settings.heteroscedastic, backend)
    problem = problem.with_dispersion(found.problem.dispersion)

    def bring(blocks: Blocks) -> Blocks:
        """Place all points of the longer side; those of the sample keep their clusters."""
        placement = place_side(found.problem, found.preparation, blocks, axis)
        labels = placement.labels(X if axis == 0 else X.T)
        labels[chosen] = blocks.labels[axis]
        return make_blocks(problem, *blocks.relabelled(axis, labels))

    row = _settle(problem, bring(found.views[0]))
    column = row if found.views[1] is found.views[0] else _settle(problem, bring(found.views[1]))
    return replace(
        found,
        preparation=preparation,
        problem=problem,
        views=(row, column),
        finest=bring(found.finest),
    )


def _settle(problem: BlockProblem, blocks: Blocks) -> Blocks:
    """Sweep a few times; clusters that would lose all members stay as they were."""
    swept = sweep(problem, blocks, max_iter=_SWEEPS, tol=_TOL)
    return swept if swept.shape == blocks.shape else blocks
