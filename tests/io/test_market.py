import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from ccot.io import read_matrix

rng = np.random.default_rng(0)


def matrix_of(symmetry, n=7):
    values = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.6)
    if symmetry == "general":
        return values[:, :5]
    return values + values.T if symmetry == "symmetric" else values - values.T


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize(
    ("kind", "field"), [(k, f) for k in ("coordinate", "array") for f in ("real", "integer")]
)
def test_agreement_with_scipy(tmp_path, kind, field, symmetry):
    matrix = matrix_of(symmetry)
    if field == "integer":
        matrix = np.trunc(3 * matrix).astype(int)
    stored = sp.coo_array(matrix) if kind == "coordinate" else matrix
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, stored, comment="a\n\nb", field=field, symmetry=symmetry, precision=17)
    (tmp_path / "a.mtx").write_bytes(buffer.getvalue())
    found = read_matrix(tmp_path / "a.mtx").values
    expected = scipy.io.mmread(io.BytesIO(buffer.getvalue()))
    assert sp.issparse(found) == (kind == "coordinate")
    for one in (found, expected):
        assert one.shape == matrix.shape
    dense = [one.toarray() if sp.issparse(one) else one for one in (found, expected)]
    np.testing.assert_array_equal(*dense)


def test_places_without_values(tmp_path):
    text = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n"
    (tmp_path / "a.mtx").write_text(text)
    np.testing.assert_array_equal(
        read_matrix(tmp_path / "a.mtx").values.toarray(), [[1, 1], [1, 0]]
    )


def test_entries_listed_twice_add_up(tmp_path):
    text = "%%MatrixMarket matrix coordinate real general\n\n2 2 2\n1 1 5\n\n1 1 2\n"
    (tmp_path / "a.mtx").write_text(text)
    np.testing.assert_array_equal(
        read_matrix(tmp_path / "a.mtx").values.toarray(), [[7, 0], [0, 0]]
    )
