"""What a cluster is: true, signed, in the right unit, and never empty without a reason."""

import csv
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_iris

from ccot import CCOT, CCOTGW, TransportCoclustering, load_model
from ccot.datasets import (
    load_penguins,
    load_southern_women,
    load_votes,
    load_zoo,
    make_latent_blocks,
)
from ccot.describe import Column, portray_sides, with_names
from ccot.describe.statistics import row_statistics

HALVES = np.repeat([0, 1], 20)


def describe_sides(*matrix_and_labels):
    """What every row cluster and every column cluster is, with names."""
    return tuple(map(with_names, portray_sides(*matrix_and_labels)))


def describe(matrix, labels=HALVES, columns=None, **options):
    matrix = np.asarray(matrix, dtype=float)
    columns = columns or [f"c{j}" for j in range(matrix.shape[1])]
    names = [f"r{i}" for i in range(len(matrix))]
    return describe_sides(
        matrix, labels, np.zeros(matrix.shape[1], dtype=int), columns, names, **options
    )


def test_numbers_in_standard_deviations():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(40, 3)) * [0.1, 0.1, 1] + 10
    matrix[:20, 0] += 5
    matrix[:20, 1] -= 3
    first, second = describe(matrix)[0]
    assert (first.name, second.name) == ("high c0, low c1", "low c0, high c1")
    assert [trait.amount for trait in first.traits[:2]] == ["+1.0 sd", "-1.0 sd"]
    assert [trait.share for trait in first.traits[:2]] == [1, 1]
    assert first.traits[0].value == pytest.approx(matrix[:20, 0].mean())


def test_counts_in_ratios():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.05, size=(40, 30))
    counts[:20, 0] = 3
    counts[20:, 1] = 4
    first, second = describe(counts)[0]
    assert first.traits[0].kind == "amount"
    assert {trait.name: trait.amount for trait in first.traits}["c0"] == "× 2"
    assert "c0" in first.name
    assert "c1" in second.name


def test_ones_in_percentage_points():
    ones = np.zeros((40, 2))
    ones[:20, 0] = 1
    ones[:15, 1] = ones[20:25, 1] = 1
    first, second = describe(ones)[0]
    assert [trait.amount for trait in first.traits] == ["100 % (+50 points)", "75 % (+25 points)"]
    assert (first.name, second.name) == ("c0, more c1", "no c0, less c1")
    assert second.traits[0].share == 1
    assert second.traits[1].share == 0.75


def test_levels_of_a_category():
    ones = np.zeros((40, 2))
    ones[:20, 0] = ones[20:, 1] = 1
    columns = [Column("species", "level", "Gentoo"), Column("species", "level", "Adelie")]
    first, second = describe(ones, columns=columns)[0]
    assert first.traits[0].title == "species = Gentoo"
    assert first.traits[0].amount == "100 % (+50 points)"
    # The level that is frequent says it all.
    assert (first.name, second.name) == ("species = Gentoo", "species = Adelie")
    assert [len(one.traits) for one in (first, second)] == [1, 1]


def test_the_average_is_called_so():
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 500)
    found = describe(rng.normal(size=(1000, 4)), labels)[0]
    assert [portrait.traits for portrait in found] == [(), ()]
    assert [portrait.name for portrait in found] == ["average", "average (2)"]
    assert found[0].sentence == "close to the average in every column"


def test_a_single_member_is_told_by_its_own_values():
    matrix = np.random.default_rng(0).normal(size=(40, 3))
    matrix[0] = [0, 8, 0]
    found = describe(matrix, np.array([1] + 39 * [0]))[0]
    assert found[1].traits[0].name == "c1"
    assert found[1].size == 1


def test_missing_values_are_left_out():
    matrix = np.tile([[0.0, 1.0]], (40, 1)) + np.arange(40)[:, None] % 3
    matrix[:20, 0] += 50
    holes = matrix.copy()
    holes[::3, 0] = np.nan
    assert describe(holes)[0][0].traits[0].value == pytest.approx(np.nanmean(holes[:20, 0]))


def test_a_column_that_a_cluster_has_no_value_of_says_nothing_about_it():
    """Cars with a rotary engine have no stroke: that is a gap, not a short one."""
    stroke, power = np.r_[np.full(5, np.nan), np.full(20, 3.0)], np.r_[np.full(5, 9.0), np.ones(20)]
    stroke[5:] += np.random.default_rng(0).normal(size=20)
    matrix, labels = np.column_stack([stroke, power]), np.repeat([0, 1], [5, 20])
    traits = row_statistics(matrix, labels, ["stroke", "power"]).traits([0])
    assert [trait.name for trait in traits] == ["power"]


def test_column_clusters_list_their_surest_members_first():
    matrix = np.random.default_rng(0).normal(size=(40, 3))
    matrix[3] = [9, 9, -9]
    names = [f"r{i}" for i in range(40)]
    found = describe_sides(
        matrix, HALVES, np.array([0, 0, 1]), ["a", "b", "c"], names, np.array([0.1, 0.9, 0.5])
    )[1]
    assert found[0].members == ("b", "a")
    assert found[0].listed == "b, a"
    assert [portrait.name for portrait in found] == ["b, a", "c"]


@given(
    arrays(np.int64, (12, 5), elements=st.integers(-2, 3)),
    arrays(np.int64, 12, elements=st.integers(0, 2)),
)
def test_sparse_as_dense(matrix, labels):
    labels[:3] = range(3)
    columns = [Column(f"c{j}", "number") for j in range(5)]
    dense = row_statistics(matrix.astype(float), labels, columns)
    sparse = row_statistics(sp.csr_array(matrix.astype(float)), labels, columns)
    for name in ("sizes", "observed", "totals", "above", "mean", "deviation"):
        np.testing.assert_allclose(getattr(dense, name), getattr(sparse, name), atol=1e-7)


@given(arrays(np.int64, 12, elements=st.integers(0, 3)))
def test_unions_are_as_if_counted_together(labels):
    labels[:4] = range(4)
    matrix = np.random.default_rng(0).normal(size=(12, 6))
    columns = [f"c{j}" for j in range(6)]
    together = with_names(row_statistics(matrix, labels, columns).portraits([[0, 2], [1, 3]]))
    apart = with_names(row_statistics(matrix, labels % 2, columns).portraits())
    for first, second in zip(together, apart, strict=True):
        assert first.size == second.size
        assert [t.name for t in first.traits] == [t.name for t in second.traits]


# Estimators -----------------------------------------------------------------------------------


def test_setosa_has_short_petals(tmp_path):
    iris = load_iris(as_frame=True)
    scaled = (iris.data - iris.data.mean()) / iris.data.std()
    model = TransportCoclustering(3, 2, random_state=0).fit(scaled)
    setosa = int(model.row_labels_[0])
    assert model.cluster_names_[setosa] == "low petal length (cm), low petal width (cm)"
    frame = model.describe_clusters(iris.data)
    told = frame[(frame.side == "row") & (frame.cluster == setosa)].iloc[0]
    assert (told.column, told.direction, told.share) == ("petal length (cm)", "low", 1.0)
    assert told["mean"] == pytest.approx(1.46, abs=0.02)
    assert "low petal length (cm) -1.301 (-1.3 sd)" in model.summary()
    again = load_model(model.save(tmp_path / "iris.ccot"))
    assert again.cluster_names_ == model.cluster_names_
    assert again.describe_clusters().equals(model.describe_clusters())


def test_many_rows_that_were_read_one_by_one_have_to_be_passed(tmp_path, monkeypatch):
    matrix = np.vstack([np.zeros((40, 8)), np.ones((40, 8)) * 5])
    matrix += np.random.default_rng(0).normal(size=matrix.shape) * 0.1
    np.save(tmp_path / "x.npy", matrix)
    model = TransportCoclustering(2, 2, random_state=0).fit(tmp_path / "x.npy")
    assert len(model.describe_clusters()) > 2
    monkeypatch.setattr("ccot.estimators.described.MAX_NAMED_ROWS", 79)
    # So few rows would be fitted in memory.
    monkeypatch.setattr("ccot.estimators.tables.pool_size", lambda source: 79)
    model.fit(tmp_path / "x.npy")
    with pytest.raises(ValueError, match=r"pass it, as in describe_clusters\(X\)"):
        model.describe_clusters()
    assert len(model.describe_clusters(matrix)) > 2
    with pytest.raises(ValueError, match="but the fitted matrix had"):
        model.describe_clusters(matrix[:3])


def test_rows_that_arrive_later_make_descriptions_void():
    matrix = np.repeat([[0.0, 5.0], [5.0, 0.0]], 20, axis=0)[:, [0, 0, 0, 1, 1, 1]]
    matrix += np.random.default_rng(0).normal(size=matrix.shape) * 0.01
    model = CCOT(2, 2, n_samplings=2, random_state=0).partial_fit(matrix)
    assert model.cluster_names_
    model.partial_fit(matrix)
    with pytest.raises(ValueError, match="was not kept"):
        model.describe_clusters()
    assert not hasattr(model, "cluster_names_")


# Sentences that a reader who knows the data would say ------------------------------------------


def told(shipped, labels, cluster, *, kept=slice(None)):
    """What is said of a cluster, by column."""
    found = describe_sides(
        shipped.data[kept], labels, np.zeros(shipped.data.shape[1], dtype=int),
        shipped.column_names, np.array(shipped.row_names)[kept],
    )[0][cluster]  # fmt: skip
    return found.name, {trait.name: (trait.amount, trait.share) for trait in found.traits}


def classes(shipped, name):
    return np.unique(shipped.annotations[name], return_inverse=True)


def test_mammals_give_milk_and_birds_have_feathers():
    zoo = load_zoo()
    names, labels = classes(zoo, "class")
    name, mammals = told(zoo, labels, list(names).index("mammal"))
    assert name == "milk, no eggs"
    assert mammals["milk"] == ("100 % (+59 points)", 1.0)
    assert mammals["eggs"][0].startswith("2 % (-")
    assert "hair" in mammals
    name, birds = told(zoo, labels, list(names).index("bird"))
    assert name.startswith("feathers")
    assert birds["feathers"][0] == "100 % (+80 points)"
    _, fish = told(zoo, labels, list(names).index("fish"))
    assert fish["fins"][1] == fish["aquatic"][1] == 1.0
    assert fish["legs"][0] == "-1.4 sd"


def test_republicans_voted_for_the_fee_freeze():
    votes = load_votes()
    names, labels = classes(votes, "party")
    assert list(names) == ["democrat", "republican"]
    name, republicans = told(votes, labels, 1)
    assert name.startswith("physician fee freeze")
    amount, share = republicans["physician fee freeze"]
    assert amount == "99 % (+57 points)"
    assert share > 0.98
    _, democrats = told(votes, labels, 0)
    assert democrats["physician fee freeze"][0].startswith("5 % (-")
    assert "adoption of the budget resolution" in democrats


def test_gentoos_are_heavy_with_shallow_bills():
    penguins = load_penguins()
    measured = ~np.isnan(penguins.data).all(axis=1)
    names, labels = classes(penguins, "species")
    labels = labels[measured]
    name, gentoo = told(penguins, labels, list(names).index("Gentoo"), kept=measured)
    assert "flipper_length_mm" in gentoo
    assert gentoo["body_mass_g"] == ("+1.1 sd", pytest.approx(0.98, abs=0.03))
    assert gentoo["bill_depth_mm"][0] == "-1.1 sd"
    assert name == "high flipper_length_mm, low bill_depth_mm"
    name, _ = told(penguins, labels, list(names).index("Adelie"), kept=measured)
    assert name.startswith("low bill_length_mm")


def test_every_cluster_of_southern_women_says_something():
    women = load_southern_women()
    model = TransportCoclustering(2, 3, random_state=0).fit(women.data)
    assert {line["direction"] for line in model.describe_clusters().to_dict("records")} == {
        "high", "low",
    }  # fmt: skip


# Tables that users would bring ------------------------------------------------------------------


def columns_of(path):
    """A table as numbers: words as one column of zeros and ones for each level."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    columns, values = [], []
    for j, name in enumerate(head):
        column = [line[j] if line[j] not in ("", "?", "NA") else None for line in lines]
        try:
            values.append([np.nan if value is None else float(value) for value in column])
            columns.append(Column(name))
        except ValueError:
            for level in sorted({value for value in column if value is not None}):
                values.append([np.nan if v is None else float(v == level) for v in column])
                columns.append(Column(name, "level", level))
    return np.array(values).T, columns


def test_tables_leave_no_card_empty(data_home):
    tables = sorted((data_home / "tables").glob("*.labels.csv"))
    assert len(tables) == 11
    for labels in tables:
        name = labels.name.removesuffix(".labels.csv")
        matrix, columns = columns_of(labels.with_name(f"{name}.csv"))
        classes, codes = np.unique(
            labels.read_text(encoding="utf-8").split("\n")[1 : len(matrix) + 1], return_inverse=True
        )
        names = [f"row {i}" for i in range(len(matrix))]
        one = np.zeros(len(columns), dtype=int)
        found = describe_sides(matrix, codes, one, columns, names)[0]
        assert all(portrait.traits for portrait in found), name
        assert len({portrait.name for portrait in found}) == len(found), name
        if name == "penguins":
            gentoo = found[classes.tolist().index("Gentoo")]
            told = {trait.title: trait.amount for trait in gentoo.traits}
            assert told["island = Biscoe"] == "100 % (+51 points)"
            assert told["body_mass_g"] == "+1.1 sd"


def test_clusters_of_dates_beside_yes_and_no_are_described_in_standard_deviations():
    pd, rng, half = pytest.importorskip("pandas"), np.random.default_rng(0), np.arange(60) % 2
    table = {
        f"answer {i}": np.where(rng.random(60) < 0.1 + 0.8 * half, "yes", "no") for i in (1, 2)
    }
    for i in (1, 2):
        days = (900 * half + rng.normal(0, 100, 60)).astype(int)
        table[f"date {i}"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")
    model = TransportCoclustering(n_row_clusters=2, n_column_clusters=2, random_state=0)
    cards = model.fit(pd.DataFrame(table)).describe_clusters()
    of_columns = cards[cards["side"] == "column"]
    assert of_columns["amount"].str.endswith(" sd").all()
    assert of_columns["mean"].abs().max() < 5


def test_a_small_matrix_is_described_when_asked_for_as_it_was_fitted():
    blocks = make_latent_blocks([[0, 6], [6, 0]], 40, 30, sigma=0.1, random_state=0)
    matrix = blocks.data.copy()
    model = CCOTGW().fit(matrix)
    assert not hasattr(model, "_kept_portraits")
    expected = model.describe_clusters(blocks.data)
    matrix[:] = 0
    copied = pickle.loads(pickle.dumps(model))
    assert not hasattr(copied, "_to_describe")
    for one in (model, copied):
        assert str(one.describe_clusters()) == str(expected)


def test_a_sparse_matrix_is_described_when_asked_for_unless_it_was_changed():
    rng = np.random.default_rng(0)
    rates = np.kron([[3.0, 0.2], [0.2, 3.0]], np.ones((30, 20)))
    counts = sp.csr_array(rng.poisson(rates).astype(float))
    model, changed = (TransportCoclustering(random_state=0).fit(counts) for _ in range(2))
    assert not hasattr(model, "_kept_portraits")
    expected = model.describe_clusters(counts)
    copied = pickle.loads(pickle.dumps(model))
    assert not hasattr(copied, "_to_describe")
    for one in (model, copied):
        assert one.describe_clusters().equals(expected)
    counts.data *= 2
    assert model.describe_clusters().equals(expected)
    with pytest.raises(ValueError, match="changed since: pass it"):
        changed.describe_clusters()
    assert "row clusters: sizes 30, 30" in changed.summary()


@pytest.fixture(scope="module")
def hidden():
    """A masked matrix with absurd values behind the mask, and the fit to it."""
    rng = np.random.default_rng(0)
    matrix = np.kron([[1.0, 5.0], [6.0, 1.0]], np.ones((20, 10))) + rng.normal(size=(40, 20))
    mask = rng.random(matrix.shape) < 0.2
    masked = np.ma.masked_array(np.where(mask, 1e6, matrix), mask)
    return masked, TransportCoclustering(random_state=0).fit(masked)


def test_masked_entries_are_not_described(hidden):
    masked, model = hidden
    assert str(model.describe_clusters(masked)) == str(model.describe_clusters())


@pytest.mark.parametrize("form", ["dia", "coo", "lil"])
def test_sparse_matrices_of_every_format_are_described(form):
    counts = sp.csr_array(np.kron(np.eye(2), np.ones((20, 10))))
    model = TransportCoclustering(random_state=0).fit(counts)
    expected = model.describe_clusters(counts)
    assert model.describe_clusters(counts.asformat(form)).equals(expected)


def test_tables_with_words_are_described_when_they_are_given_again():
    pd = pytest.importorskip("pandas")
    kind = np.arange(60) % 3
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)) + 4 * kind[:, None])
    frame.columns = ["a", "b", "c"]
    frame["colour"] = np.array(["blue", "red", "green"])[kind]
    model = TransportCoclustering(random_state=0).fit(frame)
    expected = model.describe_clusters()
    assert "colour = blue" in set(expected["column"])
    for again in (frame, frame[["colour", "c", "b", "a"]]):
        assert model.describe_clusters(again).equals(expected)
    with pytest.raises(ValueError, match="X lacks fitted columns: b, c"):
        model.describe_clusters(frame[["a", "colour"]])
    with pytest.raises(ValueError, match="X has 5 rows, but 60 were fitted"):
        model.describe_clusters(frame[:5])
