import numpy as np
import pytest
from scipy.stats import skew

from ccot.blocks.tables import TablePreparation, count_unread, prepare_table
from ccot.io.matrix import Table
from tests.blocks.tables import draw_table

RNG = np.random.default_rng(0)


def mixed():
    return Table(
        {
            "size": np.array([1.0, 2.0, np.nan, 5.5]),
            "colour": np.array(["red", None, "blue", "red"], dtype=object),
            "same": np.ones(4),
            "answer": np.array([0.0, 1.0, 1.0, np.nan]),
        }
    )


def test_numbers_come_first_and_every_level_is_a_cell():
    preparation = prepare_table(mixed())
    rows = preparation.cells(mixed())
    assert [preparation.names[j] for j in preparation.used] == ["size", "colour", "answer"]
    assert preparation.dropped == ("same",)
    np.testing.assert_array_equal(rows.exposure[:, 0], [1, 1, 0, 1])
    assert rows.total[:, 0].sum() == pytest.approx(0)
    assert (rows.total[:, 0] ** 2).sum() == pytest.approx(3)
    # Levels by name: blue, red; 0, 1.
    np.testing.assert_array_equal(rows.total[:, 1:3], [[0, 1], [0, 0], [1, 0], [0, 1]])
    np.testing.assert_allclose(rows.exposure[[0, 1], 1:3], [[1 / 3, 2 / 3], [0, 0]])
    np.testing.assert_allclose(rows.total.sum(axis=0)[1:], rows.exposure.sum(axis=0)[1:])


def test_counts_are_exposed_to_their_mean():
    table, _ = draw_table(0, gaps=0.1)
    preparation = prepare_table(table)
    counts = [c for c in preparation.columns if c.family == "poisson"]
    assert counts
    rows = preparation.cells(table)
    n_real = sum(c.family == "gaussian" for c in preparation.columns)
    cells = slice(n_real, n_real + len(counts))
    sums = rows.total[:, cells].sum(axis=0)
    np.testing.assert_allclose(sums, rows.exposure[:, cells].sum(axis=0))


def test_columns_that_new_rows_lack_are_gaps():
    preparation = prepare_table(mixed())
    rows = preparation.cells(Table({"answer": np.array([1.0]), "other": np.array([3.0])}))
    np.testing.assert_array_equal(rows.exposure[0, :3], 0)
    assert rows.exposure[0, 3:].sum() == pytest.approx(1)


def unread(preparation, table):
    return sum(
        count_unread(table.columns[column.kind.name], column.kind)
        for column in preparation.columns
        if column.kind.name in table.columns
    )


def test_levels_never_seen_are_counted():
    new = Table({"colour": np.array(["green", "red", None], dtype=object)})
    assert unread(prepare_table(mixed()), new) == 1


@pytest.mark.parametrize(
    ("fitted", "new", "count"),
    [
        (["1%", "5%", "3.5%"], ["2%", "NA", "2", "much"], 2),
        (["2020-01-02", "2021-05-06"], ["2020-03-04", "someday", "-"], 1),
        (["1,200.50", "900.25", "12,000.75"], ["5", "1,300", "unknown", "five"], 1),
        (["low", "high", "medium"], ["low", "", "very high"], 1),
        (["0", "1", "1"], ["0", "?", "2", "yes"], 2),
    ],
)
def test_cells_that_are_not_written_as_fitted_ones_are_counted(fitted, new, count):
    before, after = (Table({"a": np.array(one, dtype=object)}) for one in (fitted, new))
    preparation = prepare_table(before)
    assert unread(preparation, before) == 0
    assert unread(preparation, after) == count
    # And none of them is taken for anything.
    seen = preparation.cells(after).exposure.any(axis=1)
    n_gaps = sum(cell in ("NA", "-", "unknown", "", "?") for cell in new)
    assert len(new) - seen.sum() == count + n_gaps


def test_plain_numbers_are_no_shares():
    preparation = prepare_table(Table({"a": np.array(["1%", "5%", "3.5%"], dtype=object)}))
    assert unread(preparation, Table({"a": np.array([1.0, np.nan, 5.0])})) == 2


@pytest.mark.parametrize(
    ("values", "transform"),
    [
        (np.exp(RNG.normal(size=500)), "log"),
        (np.append(0.0, RNG.normal(size=500) ** 2), "sqrt"),
        (RNG.normal(size=500), "none"),
        (-np.exp(RNG.normal(size=500)), "none"),
    ],
)
def test_skewed_columns_are_made_less_so(values, transform):
    table = Table(
        {"x": values, "word": np.array(["a", "b", "c"], dtype=object)[np.arange(len(values)) % 3]}
    )
    preparation = prepare_table(table)
    assert preparation.columns[0].transform == transform
    assert ("skewed ones as logarithms or roots (x)" in preparation.sentence) == (
        transform != "none"
    )
    if transform != "none":
        assert abs(skew(preparation.columns[0].numbers(values))) < skew(values) / 2
    assert prepare_table(table, scale="standard").columns[0].transform == "none"


@pytest.mark.parametrize(
    ("scale", "location", "spread"),
    [("none", np.mean, lambda x: 1.0), ("standard", np.mean, np.std),
     ("robust", np.median, lambda x: np.subtract(*np.quantile(x, (0.75, 0.25))) / 1.349)],
)  # fmt: skip
def test_numbers_are_scaled_as_asked(scale, location, spread):
    x = RNG.normal(5, 3, size=100)
    table = Table({"x": x, "y": RNG.normal(size=100)})
    column = prepare_table(table, scale=scale).columns[0]
    np.testing.assert_allclose(column.numbers(x), (x - location(x)) / spread(x))


def test_row_levels_are_taken_out_where_asked():
    table = Table({name: RNG.normal(size=20) for name in "abc"})
    table.columns["a"][:3] = np.nan
    rows = prepare_table(table, center="rows").cells(table)
    np.testing.assert_allclose(rows.total.sum(axis=1), 0, atol=1e-12)
    assert (rows.total[:3, 0] == 0).all()


def test_what_is_done_is_said():
    preparation = prepare_table(mixed())
    assert isinstance(preparation, TablePreparation)
    text = str(preparation)
    assert "row levels kept; left out: same (constant)" in text
    assert "same: constant (all its values are the same), left out" in text
    assert "colour: yes/no of 2 levels (two words); 1 missing" in text


def test_a_table_without_a_column_to_use_is_refused():
    with pytest.raises(ValueError, match="no column can be used: 'x' is constant"):
        prepare_table(Table({"x": np.ones(5), "y": np.ones(5)}))
