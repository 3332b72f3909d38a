"""Values as given and as the fit saw them, and ratings, on the page in a real browser."""

import numpy as np
import pytest
import scipy.sparse as sp

from ccot import TransportCoclustering
from ccot.recommend import BlockRecommender
from ccot.report import write_report
from tests.e2e.report_page import arrange, point_at

# What is told of the entry in the first row and column as they are given.
FIRST = (0.001, 0.001)


def told(page, what):
    arrange(page, "given")
    point_at(page, *FIRST)
    lines = page.locator("#readout span").all_inner_texts()
    found = next(line for line in lines if line.startswith(what))
    return float(found.removeprefix(what).replace(",", ""))


def below(page):
    """The second line of every block, as numbers."""
    texts = page.locator("#block-table td small").all_inner_texts()
    return np.array([float(text.removesuffix(" %").replace(",", "")) for text in texts])


def mean_of(block):
    return np.nan if np.isnan(block).all() else np.nanmean(block)


def block_means(values, rows, columns):
    return [
        mean_of(values[np.ix_(rows == k, columns == j)])
        for k in range(rows.max() + 1)
        for j in range(columns.max() + 1)
    ]


@pytest.mark.parametrize(
    ("scale", "center", "sparse"),
    [("standard", "columns", False), ("auto", "both", False), ("log", "none", True)],
)
def test_prepared_values_of_a_matrix(scale, center, sparse, visit, tmp_path):
    rng = np.random.default_rng(0)
    counts = rng.poisson(
        np.array([[0.1, 2.0], [2.0, 0.2]])[np.arange(60) % 2][:, np.arange(30) % 2]
    )
    values = counts + (0.0 if sparse else rng.normal(size=counts.shape))
    matrix = sp.csr_array(values) if sparse else values
    model = TransportCoclustering(
        2, 2, family="gaussian", scale=scale, center=center, n_init=2, random_state=0
    ).fit(matrix)
    page = visit(write_report(tmp_path / "page.html", model, matrix=matrix))
    prepared = model.preparation_.matrix(matrix)
    prepared = prepared.toarray() if sp.issparse(prepared) else prepared
    page.select_option("#mode", "prepared")
    assert "which the fit used" in page.inner_text("#legend-title")
    assert told(page, "prepared value") == pytest.approx(prepared[0, 0], rel=6e-3, abs=1e-6)
    expected = block_means(prepared, model.row_labels_, model.column_labels_)
    np.testing.assert_allclose(below(page), expected, rtol=6e-3, atol=1e-6)


def test_prepared_values_of_a_table(visit, tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    group = np.arange(80) % 2
    frame = pandas.DataFrame({
        "income": np.exp(rng.normal(10 + group, 0.3)),
        "age": rng.normal(40 + 20 * group, 4),
        "height": rng.normal(170 + 10 * group, 4),
        "town": np.where(group, "Rome", "Oslo"),
    })  # fmt: skip
    model = TransportCoclustering(2, 2, n_init=2, random_state=0).fit(frame)
    page = visit(write_report(tmp_path / "page.html", model, matrix=frame))
    page.select_option("#mode", "prepared")
    prepared = model.preparation_.columns[0].numbers(frame["income"].to_numpy())
    assert told(page, "prepared value") == pytest.approx(prepared[0], rel=6e-3)
    assert "Words have no prepared value" in page.inner_text("#legend-note")


def test_matrix_as_it_was_has_no_prepared_mode(visit, tmp_path):
    values = np.random.default_rng(0).integers(0, 2, size=(30, 20)).astype(float)
    model = TransportCoclustering(2, 2, n_init=1, random_state=0).fit(values)
    page = visit(write_report(tmp_path / "page.html", model, matrix=values))
    assert "prepared" not in page.locator("#mode option").evaluate_all(
        "options => options.map(({value}) => value)"
    )
    assert page.locator("#block-table td small").count() == 0


def test_ratings_are_shown_where_there_are_some(visit, artefacts, tmp_path):
    rng = np.random.default_rng(0)
    taste = np.array([[5.0, 2.0], [1.0, 4.0]])[np.arange(60) % 2][:, np.arange(40) % 2]
    chance = np.array([[0.6, 0.1], [0.1, 0.6]])[np.arange(60) % 2][:, np.arange(40) % 2]
    ratings = np.where(rng.random(taste.shape) < chance, taste, np.nan)
    model = BlockRecommender(random_state=0).fit(ratings)
    page = visit(write_report(tmp_path / "page.html", model))
    rows, columns = model.coclustering_.row_labels_, model.coclustering_.column_labels_
    expected = block_means(100.0 * ~np.isnan(ratings), rows, columns)
    np.testing.assert_allclose(below(page), expected, rtol=6e-3)
    shown = page.locator("#block-table td button").all_inner_texts()
    means = np.array([float(text.split()[0].replace("missing", "nan")) for text in shown])
    np.testing.assert_allclose(means, block_means(ratings, rows, columns), rtol=6e-3)
    page.select_option("#mode", "rated")
    assert "with a rating" in page.inner_text("#legend-title")
    page.select_option("#mode", "deviation")
    page.locator("#row-number").fill("1")
    page.screenshot(path=artefacts / "ratings.png", full_page=True)
    assert "NaN" not in page.inner_text("body")
