"""Each criterion is what the docstring says, and moves in the one direction theory allows."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, entr, gammaln
from scipy.stats import dirichlet, norm
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF

from ccot.baselines import (
    DoubleKMeans,
    GaussianLatentBlockModel,
    InformationTheoreticCoclustering,
    ResidualBayesianCoclustering,
    TriNMF,
    TwoSidedKMeans,
    TwoSidedNMF,
)
from ccot.baselines.base import run_start
from ccot.baselines.partitions import indicator
from tests.baselines.rivals import assert_never_rises

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@st.composite
def problems(draw):
    """A non-negative matrix with some structure, ties and zeros, and numbers of clusters."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    shape = draw(st.integers(2, 20)), draw(st.integers(2, 20))
    numbers = tuple(draw(st.integers(1, min(size, 5))) for size in shape)
    means = rng.gamma(1.0, 3.0, size=numbers)
    blocks = means[rng.integers(numbers[0], size=shape[0])][
        :, rng.integers(numbers[1], size=shape[1])
    ]
    kind = draw(st.sampled_from(["counts", "values", "clear", "large"]))
    noise = rng.gamma(2.0, size=shape)
    X = {
        "counts": lambda: rng.poisson(blocks).astype(float),
        "values": lambda: blocks + noise,
        "clear": lambda: blocks + 1e-3 * noise,
        "large": lambda: 1e6 * (blocks + noise),
    }[kind]()
    return X, numbers, draw(st.integers(0, 2**31))


def path_of(rival, problem, **params):
    X, numbers, seed = problem
    return rival(*numbers, n_init=1, max_iter=30, tol=0, random_state=seed, **params).fit(X)


def rounding_of_squares(X, model):
    """Scale of rounding: a sum of squares is divided by variances as small as 1e-8 of it."""
    return np.abs(model.criterion_path_).max() + 1e4 * X.size


@given(problems())
def test_double_kmeans_never_raises_the_sum_of_squares(problem):
    model = path_of(DoubleKMeans, problem)
    X = problem[0]
    assert_never_rises(model.criterion_path_, np.square(X - X.mean()).sum())
    fitted = model.block_means_[model.row_labels_][:, model.column_labels_]
    assert model.criterion_ == pytest.approx(
        np.square(X - fitted).sum(), abs=1e-11 * np.square(X).sum()
    )
    assert (model.n_row_clusters_, model.n_column_clusters_) == problem[1]


@given(problems())
def test_tri_nmf_never_raises_the_error(problem):
    model = path_of(TriNMF, problem)
    assert_never_rises(model.criterion_path_, np.square(problem[0]).sum())


@pytest.mark.parametrize("variance", ["shared", "block"])
@pytest.mark.parametrize("assignment", ["soft", "hard"])
@given(problems())
def test_block_em_never_lowers_the_bound(assignment, variance, problem):
    model = path_of(GaussianLatentBlockModel, problem, assignment=assignment, variance=variance)
    assert_never_rises(-model.criterion_path_, rounding_of_squares(problem[0], model))


@given(problems(), st.booleans())
def test_information_loss_never_rises(problem, sparse):
    X, numbers, seed = problem
    model = path_of(
        InformationTheoreticCoclustering, (sp.csr_matrix(X) if sparse else X, numbers, seed)
    )
    assert_never_rises(model.criterion_path_, 1.0)
    assert (model.n_row_clusters_, model.n_column_clusters_) == numbers


@given(problems(), st.floats(0.0, 0.9), st.sampled_from([0.01, 0.1, 1.0, 3.0]))
def test_residual_bayesian_bound_never_falls(problem, missing, concentration):
    X, numbers, seed = problem
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(X.shape) < missing, np.nan, X)
    X[0, 0] = 1.0
    model = path_of(ResidualBayesianCoclustering, (X, numbers, seed), concentration=concentration)
    assert_never_rises(-model.criterion_path_, rounding_of_squares(X, model))


# The slow obvious versions --------------------------------------------------------------------


def first_state(model, X):
    return model._method(X).start_from(*model._first_partitions(X).draw("k-means++", 0))


@pytest.mark.parametrize("rules", ["exact", "multiplicative"])
def test_tri_nmf_error_is_that_of_its_factors(rules):
    X = np.random.default_rng(0).gamma(2.0, size=(12, 9))
    model = TriNMF(3, 2, rules=rules)
    end = run_start(model._method(X), first_state(model, X), 20, 0.0)
    product = end.state.rows @ end.state.table @ end.state.columns.T
    assert end.criterion == pytest.approx(np.square(X - product).sum(), rel=1e-10)


def test_information_loss_is_the_divergence_from_the_approximation():
    X = np.random.default_rng(0).poisson(1.0, size=(14, 11)).astype(float)
    model = InformationTheoreticCoclustering(3, 4, random_state=0).fit(X)
    p = X / X.sum()
    rows, columns = indicator(model.row_labels_, 3), indicator(model.column_labels_, 4)
    table = rows.T @ p @ columns
    row_share = p.sum(axis=1) / (rows @ table.sum(axis=1))
    column_share = p.sum(axis=0) / (columns @ table.sum(axis=0))
    q = (rows @ table @ columns.T) * np.outer(row_share, column_share)
    seen = p > 0
    loss = (p[seen] * np.log(p[seen] / q[seen])).sum()
    assert model.criterion_ == pytest.approx(loss, rel=1e-10)


@pytest.mark.parametrize("variance", ["shared", "block"])
@pytest.mark.parametrize("assignment", ["soft", "hard"])
def test_block_em_bound_is_that_of_its_memberships(assignment, variance):
    X = np.random.default_rng(0).normal(size=(10, 8))
    model = GaussianLatentBlockModel(2, 3, assignment=assignment, variance=variance)
    state = run_start(model._method(X), first_state(model, X), 5, 0.0).state
    s, t = state.rows, state.columns
    bound = entr(s).sum() + entr(t).sum()
    for memberships in (s, t):
        shares = memberships.mean(axis=0)
        used = shares > 1e-200
        bound += (memberships[:, used] * np.log(shares[used])).sum()
    for k, m in itertools.product(range(2), range(3)):
        law = norm(state.means[k, m], np.sqrt(state.variances[k, m]))
        bound += s[:, k] @ law.logpdf(X - X.mean()) @ t[:, m]
    assert state.criterion == pytest.approx(bound, rel=1e-10)


def test_residual_bayesian_bound_is_that_of_its_beliefs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 7))
    X[rng.random(X.shape) < 0.3] = np.nan
    model = ResidualBayesianCoclustering(2, 3)
    state = run_start(model._method(X), first_state(model, X), 3, 0.0).state
    bound = 0.0
    for side in (state.row, state.column):
        alpha = np.full(side.membership.shape[1], side.concentration)
        for count, phi, gamma in zip(side.counts, side.membership, side.dirichlet, strict=True):
            log_share = digamma(gamma) - digamma(gamma.sum())
            bound += gammaln(alpha.sum()) - gammaln(alpha).sum() + (alpha - 1) @ log_share
            bound += dirichlet(gamma).entropy()
            bound += count * (phi @ log_share + entr(phi).sum())
        for mean, variance in zip(side.residual, side.uncertainty, strict=True):
            law = norm(0, np.sqrt(side.spread))
            bound += law.logpdf(mean) - variance / side.spread / 2
            bound += norm(0, np.sqrt(variance)).entropy()
    centred = X - np.nanmean(X)
    for (u, v), x in np.ndenumerate(centred):
        if np.isnan(x):
            continue
        doubt = state.row.uncertainty[u] + state.column.uncertainty[v]
        shift = state.row.residual[u] + state.column.residual[v]
        for k, m in itertools.product(range(2), range(3)):
            weight = state.row.membership[u, k] * state.column.membership[v, m]
            law = norm(state.means[k, m] + shift, np.sqrt(state.variances[k, m]))
            bound += weight * (law.logpdf(x) - doubt / state.variances[k, m] / 2)
    assert state.criterion == pytest.approx(bound, rel=1e-9)


# scikit-learn's own ---------------------------------------------------------------------------


def seeds_of(random_state, n_init):
    return np.random.default_rng(random_state).integers(2**31, size=n_init).tolist()


def test_two_sided_kmeans_is_the_best_kmeans_of_each_side():
    X = np.random.default_rng(0).normal(size=(40, 30))
    model = TwoSidedKMeans(3, 4, n_init=12, random_state=7).fit(X)
    # Five starts share the seed of the first of them.
    tasks = list(zip(seeds_of(7, 12)[::5], (5, 5, 2), strict=True))
    best = [
        min(
            (KMeans(k, n_init=n_init, random_state=seed).fit(points) for seed, n_init in tasks),
            key=lambda kmeans: kmeans.inertia_,
        )
        for points, k in ((X, 3), (np.ascontiguousarray(X.T), 4))
    ]
    np.testing.assert_array_equal(model.row_labels_, best[0].labels_)
    np.testing.assert_array_equal(model.column_labels_, best[1].labels_)
    assert model.criterion_ == pytest.approx(best[0].inertia_ + best[1].inertia_)


@pytest.mark.parametrize(("n_init", "excess"), [(4, 1e-9), (24, 0.01)])
def test_two_sided_nmf_is_the_best_nmf_of_each_side(n_init, excess):
    """Of more than five starts five are run to the end: the best may be missed by little."""
    X = np.random.default_rng(0).gamma(2.0, size=(40, 30))
    model = TwoSidedNMF(3, 4, init="random", n_init=n_init, random_state=7).fit(X)
    errors = [
        min(
            NMF(k, init="random", max_iter=9999, random_state=seed).fit(points).reconstruction_err_
            for seed in seeds_of(7, n_init)
        )
        for points, k in ((X, 3), (X.T, 4))
    ]
    assert -1e-9 <= model.criterion_ / np.square(errors).sum() - 1 <= excess
