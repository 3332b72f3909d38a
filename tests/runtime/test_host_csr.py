"""Parts of the rows of sparse matrices in memory; tests/blocks/test_products.py has products."""

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.runtime.host_csr import row_parts, rows_of


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_are_cut_into_parts_of_some_entries(make):
    X = make(np.ones((10, 6)))
    sizes = [[part.stop - part.start for part in row_parts(X, size)] for size in (24, 3, 99)]
    assert sizes == [[4, 4, 2], [1] * 10, [10]]


def test_parts_have_as_many_entries_where_rows_do_not():
    """Half of the rows hold nothing, and one more than all others."""
    counts = np.array([0, 0, 0, 0, 0, 30, 1, 2, 3, 4])
    starts = np.append(0, np.cumsum(counts))
    columns = np.concatenate([np.arange(count) for count in counts])
    X = sp.csr_array((np.ones(starts[-1]), columns, starts), shape=(10, 30))
    parts = row_parts(X, 6)
    assert [parts[0].start, *(part.stop for part in parts)] == [0, 6, 9, 10]
    assert [part.stop for part in row_parts(sp.csr_array((10, 30)), 6)] == [10]


def test_some_rows_share_their_entries():
    matrix = sp.csr_array(np.random.default_rng(0).poisson(0.3, (90, 40)).astype(float))
    some = rows_of(matrix, slice(10, 30))
    np.testing.assert_array_equal(some.toarray(), matrix.toarray()[10:30])
    assert np.shares_memory(some.data, matrix.data)
