"""The error measures against those of the authors' program."""

import pytest

from ccot.metrics import coclustering_error, error_rate
from tests.golden.cases import RUN_NAMES, load_error_cases, load_run

EXACT = {"rel": 0, "abs": 1e-12}
ERROR_CASES = load_error_cases()


def test_every_reference_is_present():
    assert len(RUN_NAMES) == 31
    assert len(ERROR_CASES) == 18


@pytest.mark.parametrize(
    "case", ERROR_CASES, ids=[f"{i}_{case['kind']}" for i, case in enumerate(ERROR_CASES)]
)
def test_error_is_the_authors(case):
    z, w, zhat, what = (case[key] for key in ("z", "w", "zhat", "what"))
    assert coclustering_error(z, w, zhat, what) == pytest.approx(case["cce"], **EXACT)
    assert error_rate(z, zhat) == pytest.approx(case["err_rows"], **EXACT)
    assert error_rate(w, what) == pytest.approx(case["err_cols"], **EXACT)


@pytest.mark.parametrize("name", RUN_NAMES)
def test_error_of_every_run(name):
    run = load_run(name)
    error = coclustering_error(run.row_true, run.column_true, run.row_labels, run.column_labels)
    assert error == pytest.approx(float(run.stored["cce_matched"]), **EXACT)
    authors = float(run.stored["cce_authors"])
    if authors == authors:  # NaN where a number of clusters is wrong
        assert error == pytest.approx(authors, **EXACT)
    row_error = error_rate(run.row_true, run.row_labels)
    column_error = error_rate(run.column_true, run.column_labels)
    assert row_error == pytest.approx(float(run.stored["err_rows_matched"]), **EXACT)
    assert column_error == pytest.approx(float(run.stored["err_cols_matched"]), **EXACT)
