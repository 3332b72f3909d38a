"""What every scaling must satisfy, whatever the kernel."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp

from ccot.transport.sinkhorn import Status, sinkhorn

# Kernels over 26 orders of magnitude: rows and columns that share nothing are among them.
entries = st.floats(-60, 0, width=32)


@st.composite
def kernels(draw, max_size=6):
    shape = draw(st.tuples(st.integers(1, max_size), st.integers(1, max_size)))
    return draw(arrays(np.float64, shape, elements=entries))


def coupling_of(answer, log_kernel):
    return np.exp(answer.log_row[:, None] + log_kernel + answer.log_column)


@given(kernel=kernels())
def test_rows_are_exact_and_the_reported_error_bounds_the_columns(kernel):
    answer = sinkhorn(kernel, max_iter=50)
    coupling = coupling_of(answer, kernel)
    np.testing.assert_allclose(coupling.sum(1), 1 / kernel.shape[0], rtol=1e-9, atol=1e-12)
    column_error = np.abs(coupling.sum(0) - 1 / kernel.shape[1]).sum()
    assert column_error <= answer.error + 1e-9
    assert (answer.status is Status.CONVERGED) == (answer.error <= 1e-6)


@given(kernel=kernels(), n_iter=st.integers(1, 20))
def test_iterates_are_those_of_the_log_domain(kernel, n_iter):
    log_row = -kernel.max(axis=1)
    answer = sinkhorn(kernel, log_row_start=log_row, max_iter=n_iter, tol=1e-300)
    for _ in range(int(answer.n_iter)):
        log_column = -np.log(kernel.shape[1]) - logsumexp(kernel + log_row[:, None], axis=0)
        log_row = -np.log(kernel.shape[0]) - logsumexp(kernel + log_column, axis=1)
    np.testing.assert_allclose(answer.log_row, log_row, atol=1e-10)
    np.testing.assert_allclose(answer.log_column, log_column, atol=1e-10)


@given(kernel=kernels(), data=st.data())
def test_permuting_rows_and_columns_permutes_scalings(kernel, data):
    rows = np.array(data.draw(st.permutations(range(kernel.shape[0]))))
    columns = np.array(data.draw(st.permutations(range(kernel.shape[1]))))
    answer, permuted = (
        sinkhorn(given, max_iter=20, tol=1e-300) for given in (kernel, kernel[rows][:, columns])
    )
    np.testing.assert_allclose(permuted.log_row, answer.log_row[rows], atol=1e-10)
    np.testing.assert_allclose(permuted.log_column, answer.log_column[columns], atol=1e-10)


@given(kernel=kernels(), data=st.data(), n_iter=st.integers(1, 30))
def test_what_depends_on_one_index_only_belongs_to_the_scalings(kernel, data, n_iter):
    """Multiplying rows and columns of the kernel divides the scalings, at every iteration."""
    n_rows, n_columns = kernel.shape
    shifts = st.floats(-500, 500)
    by_row = data.draw(arrays(np.float64, n_rows, elements=shifts))
    by_column = data.draw(arrays(np.float64, n_columns, elements=shifts))
    shifted_kernel = kernel + by_row[:, None] + by_column
    start = -kernel.max(axis=1)
    answer = sinkhorn(kernel, log_row_start=start, max_iter=n_iter, tol=1e-300)
    shifted = sinkhorn(shifted_kernel, log_row_start=start - by_row, max_iter=n_iter, tol=1e-300)
    np.testing.assert_allclose(shifted.log_row, answer.log_row - by_row, atol=1e-9)
    np.testing.assert_allclose(shifted.log_column, answer.log_column - by_column, atol=1e-9)


@given(kernel=kernels(max_size=5), copies=st.integers(1, 3))
def test_a_batch_gives_what_its_members_give(kernel, copies):
    easier = kernel / 7
    batch = np.stack([kernel, *[easier] * copies])
    together = sinkhorn(batch, max_iter=60)
    for log_row, n_iter, member in zip(together.log_row, together.n_iter, batch, strict=True):
        alone = sinkhorn(member, max_iter=60)
        assert n_iter == alone.n_iter
        np.testing.assert_allclose(log_row, alone.log_row, atol=1e-10)
