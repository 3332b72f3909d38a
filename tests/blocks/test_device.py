"""Sums, sweeps and singular vectors on a device, against the same with NumPy.

PyTorch on the CPU stands for every device: the code has no other branch for them.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.blocks import fit, spectrum, start
from ccot.blocks.axes import has_room
from ccot.blocks.criteria import evidence
from ccot.blocks.fit import BlockSettings, counts_on_device
from ccot.blocks.hierarchy import Start, build_hierarchy
from ccot.blocks.problem import make_blocks, make_problem, pearson_dispersion
from ccot.blocks.refine import match_counts
from ccot.blocks.select import trust_icl
from ccot.blocks.spectrum import leading_vectors, thin_svd
from ccot.blocks.start import embed, segment
from ccot.blocks.sweep import assign, sweep
from ccot.metrics import error_rate
from ccot.runtime.backends import Backend, choose_backend, is_device_csr
from ccot.runtime.device_csr import to_scipy
from tests.blocks.matrices import MEANS, draw, seeded

pytestmark = pytest.mark.usefixtures("one_torch_thread")

MAKES = {"dense": np.asarray, "sparse": sp.csr_array}
each_make = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES.keys())


@pytest.fixture
def torch():
    # So small that a few dozen points are more than one chunk.
    return replace(choose_backend("cpu"), chunk_bytes=500)


def with_gaps(X, share=0.2):
    return np.where(np.random.default_rng(5).uniform(size=X.shape) < share, np.nan, X)


def both(X, family, torch, precision=None):
    """The problem with NumPy, and on the device."""
    return [make_problem(X, family, precision, *backend) for backend in ((), (torch,))]


def on_device(array):
    return type(array).__module__ == "torch"


def assert_same_sums(here, there, rows, columns, rng):
    plan = rng.dirichlet(np.ones(4), len(columns))
    for partner, n_partners in ((columns, 3), (plan, 4)):
        one, other = (problem.axes[0].profiles(partner, n_partners) for problem in (here, there))
        assert on_device(other.total)
        np.testing.assert_allclose(other.total, one.total, rtol=1e-12, atol=1e-12)
        for given, expected in zip(other.blocks(rows, 2), one.blocks(rows, 2), strict=True):
            assert isinstance(given, np.ndarray)
            np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-12)
        table = here.terms(*one.blocks(rows, 2))
        gain = other.gain(*table)
        assert on_device(gain)
        np.testing.assert_allclose(gain, one.gain(*table), rtol=1e-11, atol=1e-11)


@each_make
def test_sums_on_both_sides_are_numpys(planted, family, make, torch):
    X, rows, columns = planted
    here, there = both(make(X), family, torch)
    rng = np.random.default_rng(1)
    assert there.backend is torch
    assert_same_sums(here, there, rows, columns, rng)
    for problem in (here, there):
        assert problem.axes[1].profiles(rows, 2).total.shape == (30, 2)
    swapped = [replace(problem, axes=problem.axes[::-1]) for problem in (here, there)]
    assert_same_sums(*swapped, columns % 2, np.minimum(rows, 2), rng)


def test_missing_entries_and_weights_are_numpys(torch):
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 2, 40), rng.integers(0, 3, 30)
    X = with_gaps(draw("gaussian", rows, columns, rng))
    here, there = both(X, "gaussian", torch, rng.uniform(0.5, 2.0, 30))
    assert_same_sums(here, there, rows, columns, rng)
    np.testing.assert_array_equal(there.axes[0].is_empty(), here.axes[0].is_empty())


@each_make
@pytest.mark.parametrize(
    "how", [{}, {"temperatures": (4.0, 1.0), "tol": 1e-9}, {"balanced": True}], ids=str
)
def test_sweeps_end_where_numpys_do(planted, family, make, how, torch):
    X, rows, columns = planted
    labels = rows.copy(), columns.copy()
    labels[0][:9], labels[1][:6] = 0, 1
    one, other = (
        sweep(problem, make_blocks(problem, *labels), **how)
        for problem in both(make(X), family, torch)
    )
    assert other.n_sweeps == one.n_sweeps
    for given, expected in zip(other.labels, one.labels, strict=True):
        assert isinstance(given, np.ndarray)
        np.testing.assert_array_equal(given, expected)
    np.testing.assert_allclose(other.total, one.total, rtol=1e-12)
    if one.plans is not None:
        assert other.plans is not None
        for given, expected in zip(other.plans, one.plans, strict=True):
            assert on_device(given)
            np.testing.assert_allclose(given, expected, atol=1e-9)


@each_make
def test_splits_criteria_and_confidence_are_numpys(planted, family, make, torch):
    X, rows, columns = planted
    found = []
    for problem in both(make(X), family, torch):
        blocks = match_counts(problem, make_blocks(problem, rows, columns), (5, 6))
        soft = sweep(problem, blocks, temperatures=(1.0,))
        found.append((blocks, evidence(problem, soft), assign(problem, blocks, 1)[1]))
    (one, score, sure), (other, score_there, sure_there) = found
    for given, expected in zip(other.labels, one.labels, strict=True):
        # Of two halves that are worth the same, rounding names one.
        assert error_rate(expected, given) == 0
    assert score_there == pytest.approx(score, rel=1e-10)
    np.testing.assert_allclose(sure_there, sure, atol=1e-9)


@each_make
def test_dispersion_is_numpys(make, torch):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.5, size=(50, 20)).astype(float)
    X[3], X[:, 4] = 0, 0
    here, there = both(make(X), "poisson", torch)
    blocks = make_blocks(here, rng.integers(0, 2, 50), rng.integers(0, 3, 20))
    assert pearson_dispersion(there) == pytest.approx(pearson_dispersion(here), rel=1e-12)
    assert pearson_dispersion(there, blocks) == pytest.approx(
        pearson_dispersion(here, blocks), rel=1e-12
    )


@pytest.mark.parametrize(
    ("family", "make"),
    [*((f, m) for f in MEANS for m in MAKES.values()), ("gaussian", with_gaps)],
)
@pytest.mark.parametrize("shape", [(40, 30), (90, 60), (60, 90)], ids=str)
def test_scores_of_the_start_are_numpys(family, make, shape, torch, monkeypatch):
    """Small matrices are decomposed in full, larger ones searched at random."""
    monkeypatch.setattr(spectrum, "_FULL_SIZE", 40)
    monkeypatch.setattr(start, "HERE_ENTRIES", 0)
    rng = np.random.default_rng(0)
    X = draw(family, rng.integers(0, 2, shape[0]), rng.integers(0, 3, shape[1]), rng)
    one, other = (embed(p, np.random.default_rng(0)) for p in both(make(X), family, torch))
    for given, expected in zip(other, one, strict=True):
        assert isinstance(given, np.ndarray)
        # Vectors have no sign of their own.
        given = given * np.sign((given * expected).sum(axis=0))
        np.testing.assert_allclose(given, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize(("more", "dtype"), [(1, np.float32), (0, np.float64)], ids=str)
def test_large_sparse_matrices_are_searched_in_single_precision(more, dtype, torch, monkeypatch):
    X = sp.random_array((90, 60), density=0.3, random_state=np.random.default_rng(0), format="csr")
    monkeypatch.setattr(start, "_NARROW_ENTRIES", X.nnz - more)
    monkeypatch.setattr(start, "HERE_ENTRIES", 0)
    one, other = (embed(p, np.random.default_rng(0)) for p in both(X, "poisson", torch))
    for given, expected in zip(other, one, strict=True):
        assert given.dtype == expected.dtype == dtype
        # Directions within the noise are no more exact than its distances.
        products = expected @ expected.T
        np.testing.assert_allclose(given @ given.T, products, atol=1e-3)


@pytest.mark.parametrize(("more", "device"), [(1, "cpu"), (0, None)], ids=str)
@each_make
def test_small_matrices_are_decomposed_in_memory(more, device, make, torch, monkeypatch):
    X, places = make(1.0 + np.arange(48.0).reshape(8, 6)), []

    def watched(matrix, rank, rng, backend, *rest):
        places.append(backend.device)
        return leading_vectors(matrix, rank, rng, backend, *rest)

    monkeypatch.setattr(start, "leading_vectors", watched)
    monkeypatch.setattr(start, "HERE_ENTRIES", 48 - more)
    embed(make_problem(X, "poisson", backend=torch), np.random.default_rng(0))
    assert places == [device]


def test_counts_that_came_on_a_device_have_scores_there(torch):
    X = sp.csr_array(np.random.default_rng(0).poisson(0.5, (90, 60)).astype(float))
    here, there = make_problem(X, "poisson"), make_problem(torch.send(X), "poisson", backend=torch)
    one, other = (embed(problem, np.random.default_rng(0)) for problem in (here, there))
    for given, expected in zip(other, one, strict=True):
        assert on_device(given)
        given = np.asarray(given)
        given = given * np.sign((given * expected).sum(axis=0))
        np.testing.assert_allclose(given, expected, atol=1e-8)


def test_equal_counts_on_a_device_are_no_reason_to_trust_icl(torch):
    """Whether points of few fine clusters are equal is not looked into there."""
    rows, columns = np.arange(40) % 4, np.arange(30) % 15
    X = sp.csr_array(np.random.default_rng(0).poisson(30.0, (4, 15))[rows][:, columns] * 1.0)
    here, there = make_problem(X, "poisson"), make_problem(torch.send(X), "poisson", backend=torch)
    for problem, expected in ((here, True), (there, False)):
        fine = make_blocks(problem, rows, columns)
        limit, trusted = trust_icl(problem, [Start(fine, build_hierarchy(problem, fine))])
        assert limit[0] == 4
        assert trusted[0] is expected


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_counts_that_came_on_a_device_are_the_problem_of_those_in_memory(unit, torch):
    X = unit * sp.csr_array(np.random.default_rng(0).poisson(0.5, (90, 60)).astype(float))
    here, there = make_problem(X, "poisson"), make_problem(torch.send(X), "poisson", backend=torch)
    for name in ("shape", "family", "overall", "n_observed", "dispersion", "unit"):
        assert getattr(there, name) == getattr(here, name)
    for one, other in zip(here.axes, there.axes, strict=True):
        np.testing.assert_allclose(other.exposure, one.exposure, rtol=1e-12)
        np.testing.assert_allclose(other.partner_exposure, one.partner_exposure, rtol=1e-12)
        np.testing.assert_array_equal(to_scipy(other.values).toarray(), one.values.toarray())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sample", [300, 120], ids=["all", "some"])
def test_points_are_segmented_as_by_numpy(sample, seed, torch, monkeypatch):
    monkeypatch.setattr(start, "_SAMPLE", sample)
    scores = np.random.default_rng(0).normal((3.0, -1.0), size=(300, 2))
    expected = segment(scores, seed)
    assert len(np.unique(expected)) == 35
    np.testing.assert_array_equal(segment(torch.send(scores), seed), expected)


def test_points_far_from_zero_are_segmented_as_by_numpy(torch):
    scores = np.random.default_rng(0).normal((1e8, -1e8), size=(300, 2))
    np.testing.assert_array_equal(segment(torch.send(scores), 7), segment(scores, 7))


def test_segments_that_hardly_move_are_left_as_by_numpy(torch, monkeypatch):
    monkeypatch.setattr(start, "_ROUNDS", 200)
    scores = 100 * np.random.default_rng(5).normal(size=(1500, 1))
    found = segment(torch.send(scores), 7)
    np.testing.assert_array_equal(found, segment(scores, 7))
    monkeypatch.setattr(start, "_KMEANS_TOL", 0)
    assert (segment(torch.send(scores), 7) != found).any()


def test_equal_points_on_a_device_are_one_segment(torch):
    twice = np.repeat([[0.0, 1.0], [5.0, 5.0]], 15, axis=0)
    assert error_rate(np.repeat([0, 1], 15), segment(torch.send(twice), 0)) == 0


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (10, 9), (9, 10), (3, 1), (1, 3)], ids=str)
def test_signs_of_a_decomposition_are_those_of_numpy(shape, torch):
    X = np.random.default_rng(0).normal(size=shape)
    found = thin_svd(torch.send(X), torch)
    for given, expected in zip(found, thin_svd(X), strict=True):
        np.testing.assert_allclose(given, expected, atol=1e-12)
    assert [on_device(part) for part in found] == [True, False, True]


def test_what_is_not_on_the_device_is_numpys(planted, family, torch):
    X, rows, columns = planted
    here, there = both(X, family, torch)
    back = there.on_host()
    assert back.backend.device is None
    assert isinstance(back.axes[1].profiles(rows, 2).total, np.ndarray)
    for given, expected in zip(
        back.table(rows, columns, (2, 3)), here.table(rows, columns, (2, 3)), strict=True
    ):
        np.testing.assert_array_equal(given, expected)


def test_both_sides_of_a_dense_matrix_share_its_copy(planted, family, torch):
    rows, columns = make_problem(planted[0], family, backend=torch).axes
    assert rows.copy.values.data_ptr() == columns.copy.values.data_ptr()


def test_points_are_cut_into_parts_whose_gains_fit(planted, family, torch):
    here, there = (
        problem.axes[0].profiles(planted[2], 3) for problem in both(planted[0], family, torch)
    )
    sizes = []

    def note(part):
        sizes.append(len(part.total))
        return part.total

    # 500 bytes hold the gains of 12 points over 5 clusters; threads share out smaller parts.
    on_host = replace(here, backend=replace(here.backend, chunk_bytes=500))
    for profiles, expected in ((there, [10] * 4), (on_host, [7] * 5 + [5])):
        joined = profiles.by_rows(note, 5)
        assert sizes == expected
        np.testing.assert_array_equal(joined, profiles.total)
        sizes.clear()
    there.by_rows(note, 100)
    assert sizes == [1] * 40
    enough = replace(there, backend=replace(torch, chunk_bytes=8 * 40))
    assert enough.by_rows(note, 1) is enough.total


@each_make
def test_leading_vectors_rebuild_matrices_of_low_rank(make, torch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 450))
    transposed = None if make is np.asarray else torch.send(sp.csr_array(X.T))
    found = leading_vectors(torch.send(make(X)), 5, np.random.default_rng(0), torch, transposed)
    left, values, right = map(np.asarray, found)
    np.testing.assert_allclose((left * values) @ right.T, X, atol=1e-8)


@each_make
def test_a_matrix_that_does_not_fit_is_left_to_numpy(make, torch, monkeypatch):
    X = np.random.default_rng(0).poisson(3.0, (40, 30)).astype(float)
    # Four copies, and two kilobytes for every row and column.
    held = X.nbytes
    if make is sp.csr_array:
        held = sum(part.nbytes for part in (make(X).data, make(X).indices, make(X).indptr))
    needed = 4 * held + 2048 * (40 + 30)
    monkeypatch.setattr(Backend, "free_bytes", lambda backend: needed - 1)
    with pytest.warns(RuntimeWarning, match=r"needs about 0.0 GB on device='cpu', where 0.0 GB"):
        problem = make_problem(make(X), "poisson", backend=torch)
    assert problem.backend.device is None
    monkeypatch.setattr(Backend, "free_bytes", lambda backend: needed)
    assert make_problem(make(X), "poisson", backend=torch).backend is torch


def test_counts_that_came_on_a_device_need_room_for_more_of_them(torch, monkeypatch):
    X = sp.csr_array(np.random.default_rng(0).poisson(0.5, (40, 30)).astype(float))
    needed = 4 * sum(part.nbytes for part in (X.data, X.indices, X.indptr)) + 2048 * (40 + 30)
    monkeypatch.setattr(Backend, "free_bytes", lambda backend: needed - 1)
    with pytest.warns(RuntimeWarning, match="computing with NumPy"):
        assert not has_room(torch.send(X), torch)
    monkeypatch.setattr(Backend, "free_bytes", lambda backend: needed)
    assert has_room(torch.send(X), torch)


@pytest.fixture
def few_counts(monkeypatch):
    """Amounts that are large enough for a device; one of those that are stored is zero."""
    X = sp.csr_array(np.random.default_rng(0).poisson(0.2, (40, 30)).astype(float))
    X.data[:2] = 0, 0.5
    monkeypatch.setattr(fit, "HERE_ENTRIES", X.nnz - 1)
    return X


@pytest.mark.parametrize("family", ["auto", "poisson"])
@pytest.mark.parametrize("scale", ["auto", "none"])
def test_large_sparse_counts_are_brought_to_the_device(few_counts, family, scale, torch):
    narrow = torch.send(few_counts.astype(np.float32))
    for X in (few_counts, few_counts.tocsc(), few_counts.astype(np.float32), narrow):
        there = counts_on_device(X, family, BlockSettings(scale=scale, device="cpu"))
        assert is_device_csr(there)
        assert there.dtype == torch.xp.float64
        np.testing.assert_array_equal(there.to_dense(), few_counts.toarray())
    # What is on a device stays there, whether or not one is named.
    there = counts_on_device(narrow, family, BlockSettings(scale=scale))
    assert is_device_csr(there)
    assert there.dtype == torch.xp.float64


def assert_left_in_memory(X, family, settings, torch):
    """What came from memory is as it was; what came on a device comes back."""
    assert counts_on_device(X, family, settings) is X
    back = counts_on_device(torch.send(X), family, settings)
    assert sp.issparse(back)
    np.testing.assert_array_equal(back.toarray(), X.toarray())


@pytest.mark.parametrize(
    ("family", "settings"),
    [("gaussian", {}), ("bernoulli", {}), ("auto", {"scale": "log"}), ("auto", {"center": "rows"}),
     ("poisson", {"scale": "log"}), ("poisson", {"center": "none"})],
)  # fmt: skip
def test_what_is_not_fitted_as_counts_is_left_in_memory(few_counts, family, settings, torch):
    assert_left_in_memory(few_counts, family, BlockSettings(device="cpu", **settings), torch)


def test_small_matrices_and_such_as_are_no_counts_are_left_in_memory(
    few_counts, torch, monkeypatch
):
    settings = BlockSettings(device="cpu")
    # Too many values for sparse counts, and none at all.
    assert_left_in_memory(sp.csr_array(few_counts.toarray() + 1), "auto", settings, torch)
    assert_left_in_memory(0 * few_counts, "auto", settings, torch)
    # Negative values are seen before anything is sent.
    monkeypatch.setattr(fit.prepare, "are_device_counts", None)
    few_counts.data[-1] = -1
    assert_left_in_memory(few_counts, "auto", settings, torch)
    few_counts.data[-1] = 1
    monkeypatch.setattr(fit, "HERE_ENTRIES", few_counts.nnz)
    assert_left_in_memory(few_counts, "auto", settings, torch)


def test_counts_that_a_device_has_no_room_for_are_left_in_memory(few_counts, torch, monkeypatch):
    monkeypatch.setattr(Backend, "free_bytes", lambda backend: 1)
    with pytest.warns(RuntimeWarning, match="computing with NumPy instead"):
        assert_left_in_memory(few_counts, "auto", BlockSettings(device="cpu"), torch)


def test_without_a_device_everything_is_left_in_memory(few_counts):
    dense = few_counts.toarray()
    assert counts_on_device(dense, "poisson", BlockSettings(device="cpu")) is dense
    assert counts_on_device(few_counts, "poisson", BlockSettings()) is few_counts
    with pytest.warns(RuntimeWarning, match="device='nowhere' cannot be used"):
        there = counts_on_device(few_counts, "poisson", BlockSettings(device="nowhere"))
    assert there is few_counts


def test_some_entries_of_many_tell_that_none_is_negative(few_counts):
    X = sp.vstack(25 * [few_counts], format="csr")
    assert 2**12 < X.nnz < 2**13
    assert is_device_csr(counts_on_device(X, "auto", BlockSettings(device="cpu")))


def test_counts_that_came_on_a_device_are_fitted_there(torch):
    rows, columns = np.arange(40) % 2, np.arange(30) % 3
    means = np.array([[0.6, 0.05, 0.1], [0.05, 0.5, 0.1]])[rows][:, columns]
    X = sp.csr_array(np.random.default_rng(0).poisson(means).astype(float))
    here, there = (
        fit.search_blocks(values, "poisson", BlockSettings(2, 3, n_init=1), seeded())
        for values in (X, torch.send(X))
    )
    assert (here.problem.backend.device, there.problem.backend.device) == (None, "cpu")
    for given, expected in zip(there.views[0].labels, here.views[0].labels, strict=True):
        np.testing.assert_array_equal(given, expected)
