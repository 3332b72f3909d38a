"""Tables with words on the command line."""

import csv
import json

import numpy as np
import pytest

from ccot import TransportCoclustering, load_model
from ccot.io import Table

TAKES_TABLES = "column_kinds" in TransportCoclustering().get_params()
RNG = np.random.default_rng(0)


def lines(n=60):
    """Two kinds of rows, told apart by every column."""
    for number in range(n):
        kind = number % 2
        size = f"{RNG.normal(10 * kind, 0.5):.2f}"
        yield ",".join(["ab"[kind], f"name{number}", size, ["red", "blue"][kind], str(kind + 5)])


@pytest.fixture
def mixed(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text("\n".join(["species,who,size,colour,legs", *lines()]) + "\n")
    return path


@pytest.fixture
def stub(monkeypatch):
    """Take the place of the estimator's fit, and keep what it is given."""
    given = []

    def fit(self, X, y=None):
        given.append(X)
        raise ValueError("the stub fits nothing")

    monkeypatch.setattr(TransportCoclustering, "fit", fit)
    return given


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_words_reach_the_estimator_as_a_table(ccot, mixed, stub):
    outcome = ccot("fit", mixed, "--no-report", "--drop", "who", code=2)
    assert "the stub fits nothing" in outcome.stderr
    assert "60 x 4; text, delimiter ',', with a header, no row names, without 'who'" in (
        outcome.stdout
    )
    (table,) = stub
    assert isinstance(table, Table)
    assert list(table.columns) == ["species", "size", "colour", "legs"]
    assert table.columns["size"].dtype == np.float64
    assert table.columns["colour"][:2].tolist() == ["red", "blue"]


def test_numbers_that_are_left_by_annotations_are_a_matrix(ccot, mixed, stub):
    options = [part for name in ("species", "who", "colour") for part in ("--annotate", name)]
    ccot("fit", mixed, "--no-report", *options, code=2)
    values = stub[0]
    if isinstance(values, Table):
        values = np.column_stack(list(values.columns.values()))
    assert values.shape == (60, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kind", "colour"), "--kind colour is not COLUMN=KIND"),
        (("--annotate", "hue"), "--annotate hue is not a column: the columns are species, who"),
        (("--method", "ccot", "--scale", "log"), "are for --method transport"),
        (("--method", "ccot"), r"3 of 5 columns hold words \('species': 'a', 'who': 'name0', "),
        (("--method", "ccot"), "with --drop species --drop who --drop colour"),
        (("--index-col", "species"), "Column 'species' cannot name the rows: 30 cells are 'a'."),
    ],
)
def test_what_is_asked_for_must_make_sense(options, message, ccot, mixed):
    import re

    outcome = ccot("fit", mixed, *options, "--no-report", code=2)
    assert re.search(message, " ".join(outcome.output.replace("│", "").split()))


def test_old_names_of_numbers_are_told(ccot, table):
    outcome = ccot("fit", table, "--rows", 2, "--columns", 3, "--json", "--no-report")
    assert "FutureWarning: --rows is now called --n-row-clusters" in outcome.stderr
    assert "FutureWarning: --columns is now called --n-column-clusters" in outcome.stderr
    found = json.loads(outcome.stdout)["result"]
    assert (found["row_clusters"], found["column_clusters"]) == (2, 3)
    assert "--rows" not in ccot("fit", "--help").stdout


def test_models_of_matrices_leave_words_of_new_rows_out(ccot, blocks, model_file, tmp_path):
    path = tmp_path / "new.csv"
    head = ",".join(["kind", *blocks.columns])
    body = [",".join(["xy"[i % 2], *map(str, row)]) for i, row in enumerate(blocks.values[:4])]
    path.write_text("\n".join([head, *body]))
    outcome = ccot("predict", model_file, path, "--json")
    assert "1 columns that are not in the model are left out (the first: 'kind')" in (
        outcome.stderr
    )
    assert [line.keys() for line in json.loads(outcome.stdout)] == 4 * [
        {"name", "cluster", "confidence"}
    ]
    path.write_text("\n".join([head, *(line.replace(".", "o", 2) for line in body)]))
    assert "columns hold words ('s0'" in ccot("predict", model_file, path, code=2).stderr


def test_repeated_cells_are_said_aloud(ccot):
    listed = "".join(f"u{i % 9},w{i % 7},{i % 3}\n" for i in range(200))
    told = ccot("fit", "-", "--long", "--dry-run", stdin="who,what,much\n" + listed)
    assert (
        "note: 137 lines repeat a cell of an earlier line: summed (to change this: --aggregate"
        in told.stderr
    )
    told = ccot("fit", "-", "--long", "--dry-run", "--aggregate", "last", stdin=listed)
    assert "the last is used\n" in told.stderr


@pytest.mark.skipif(not TAKES_TABLES, reason="the estimator takes no tables")
def test_from_a_table_to_labels_and_back(ccot, mixed, tmp_path):
    ccot("fit", mixed, "--no-report", "--annotate", "species", "--kind", "legs=category",
         "--drop", "who")  # fmt: skip
    fitted = rows_of(tmp_path / "mixed-ccot" / "row_labels.csv")
    assert list(fitted[0]) == ["name", "cluster", "confidence", "species"]
    assert len({(line["species"], line["cluster"]) for line in fitted}) == 2
    run = json.loads((tmp_path / "mixed-ccot" / "run.json").read_text())
    assert "categories" in run["preparation"]
    (tmp_path / "new.csv").write_text("\n".join(mixed.read_text().splitlines()[:4]) + "\n")
    outcome = ccot("predict", "mixed-ccot/model.ccot", "new.csv", "--out", "p.csv")
    placed = rows_of(tmp_path / "p.csv")
    assert [line["cluster"] for line in placed] == [line["cluster"] for line in fitted[:3]]
    assert all(0.5 < float(line["confidence"]) <= 1 for line in placed)
    assert "2 columns that are not in the model are left out" in outcome.stderr
    (tmp_path / "less.csv").write_text("colour,legs\nblue,6\nred,5\ngreen,5\n")
    outcome = ccot("predict", "mixed-ccot/model.ccot", "less.csv")
    assert "warning: 1 of 3 fitted columns are not in X and count as missing: size" in (
        outcome.stderr
    )
    assert "unknown categories or formats count" in outcome.stderr


def test_predict_reads_new_rows_as_the_fitted_ones(ccot, tmp_path):
    rows = [f"{RNG.normal(9 * (i % 2), 1):.2f};{'uv'[i % 2]};code{i}".replace(".", ",")
            for i in range(60)]  # fmt: skip
    text = "\n".join(["größe;art;kürzel", *rows])
    (tmp_path / "old.csv").write_text(text, encoding="cp1252")
    ccot("fit", "old.csv", "--index-col", "kürzel", "--encoding", "cp1252", "--no-report")
    model = "old-ccot/model.ccot"
    outcome = ccot("predict", model, "old.csv")
    told = list(csv.DictReader(outcome.stdout.splitlines()))
    fitted = rows_of(tmp_path / "old-ccot" / "row_labels.csv")
    assert [(row["name"], row["cluster"]) for row in told] == [
        (row["name"], row["cluster"]) for row in fitted
    ]
    assert told[3]["name"] == "code3"
    assert "read as the fitted file: encoding cp1252" in outcome.stderr
    # Rows that have no names are numbered; the column of names may be anywhere.
    (tmp_path / "new.csv").write_text("größe;art\n0,5;u\n9,1;v\n", encoding="cp1252")
    assert [line[0] for line in csv.reader(ccot("predict", model, "new.csv").stdout.splitlines())
            ] == ["name", "0", "1"]  # fmt: skip
    (tmp_path / "new.csv").write_text("kürzel;größe;art\nx;0,5;u\ny;9,1;v\n")
    outcome = ccot("predict", model, "new.csv", "--encoding", "utf-8")
    assert [line.split(",")[0] for line in outcome.stdout.splitlines()] == ["name", "x", "y"]


def test_predict_finds_row_names_by_their_place(ccot, tmp_path):
    rows = [f"{RNG.normal(9 * (i % 2), 1):.2f},{RNG.normal(5 * (i % 2), 1):.2f},{100 + 3 * i}"
            for i in range(40)]  # fmt: skip
    (tmp_path / "plain.csv").write_text("\n".join(rows))
    ccot("fit", "plain.csv", "--index-col", "2", "--no-header", "--no-report")
    told = ccot("predict", "plain-ccot/model.ccot", "plain.csv").stdout.splitlines()
    assert [line.split(",")[0] for line in told[1:4]] == ["100", "103", "106"]


def test_block_means_are_told_as_read_and_as_prepared(ccot, mixed, tmp_path):
    outcome = ccot("fit", mixed, "--no-report", "--drop", "species", "--drop", "legs")
    found = tmp_path / "mixed-ccot"
    labels = np.array([int(row["cluster"]) for row in rows_of(found / "row_labels.csv")])
    where = {row["name"]: row for row in rows_of(found / "column_labels.csv")}
    blocks = rows_of(found / "blocks.csv")
    size = np.array([float(row["size"]) for row in rows_of(mixed)])
    for block in blocks:
        assert abs(float(block["prepared_mean"])) > 0.5
        if block["column_cluster"] == where["size"]["cluster"]:
            expected = size[labels == int(block["row_cluster"])].mean()
            assert float(block["mean"]) == pytest.approx(expected)
            assert f"size {expected:.4g} (" in outcome.stdout
        if block["column_cluster"] == where["colour"]["cluster"]:
            assert block["mean"] == ""
    # Categories are told by their names, not by those of their levels.
    ccot("fit", mixed, "--no-report", "--n-column-clusters", 2, "--out", "two")
    summary = json.loads((tmp_path / "two" / "run.json").read_text())["result"]["summary"]
    assert any("species, colour" in line for line in summary)


def test_block_means_of_a_matrix_are_told_before_and_after_centring(ccot, table, blocks, tmp_path):
    ccot("fit", table, "--no-report", "--center", "both")
    for block in rows_of(tmp_path / "genes-ccot" / "blocks.csv"):
        assert 0 < float(block["mean"]) < 10
        assert float(block["prepared_mean"]) < float(block["mean"]) - 1


def test_a_list_of_cells_is_told_from_a_table(ccot, tmp_path):
    cells = [f"u{RNG.integers(15)},m{RNG.integers(12)},{RNG.integers(1, 6)}" for _ in range(300)]
    (tmp_path / "long.csv").write_text("\n".join(["user,movie,stars", *cells]))
    outcome = ccot("fit", "long.csv", "--no-report")
    assert (
        "one cell of a matrix, with its row in 'user' and its column in 'movie', pass --long"
        in outcome.stderr
    )
    (tmp_path / "few.csv").write_text(
        "\n".join(["sex,town,age", *(f"{'mf'[i % 2]},{'abc'[i % 3]},{i % 40}" for i in range(90))])
    )
    assert "--long" not in ccot("fit", "few.csv", "--no-report").stderr
    dated = [f"{cell},2024-0{1 + i % 9}-11" for i, cell in enumerate(cells)]
    (tmp_path / "dated.csv").write_text("\n".join(["user,movie,stars,when", *dated]))
    assert "column in 'movie', pass --long" in ccot("fit", "dated.csv", "--no-report").stderr


def test_advice_on_units_is_what_the_method_takes(ccot, tmp_path):
    body = (f"{RNG.normal():.2f},{RNG.normal():.2f},{RNG.normal(0, 1e4):.0f}" for _ in range(40))
    (tmp_path / "units.csv").write_text("\n".join(["mm,kg,eur", *body]) + "\n")
    said = ccot("fit", "units.csv", "--no-report", "--method", "ccot").stderr
    assert "'eur' has 100.0% of the variance" in said
    assert "if the units differ, standardise the columns, or omit --method" in said


def test_only_numbers_run_against_the_others_of_their_cluster(ccot, tmp_path):
    body = (
        f"{RNG.normal(k, 0.2):.2f},{RNG.normal(-k, 0.2):.2f},{'abc'[k // 4]},{'xyz'[2 - k // 4]}"
        for k in [0, 4, 8] * 20
    )
    (tmp_path / "turned.csv").write_text("\n".join(["mass,acid,town,shop", *body]) + "\n")
    said = ccot("fit", "turned.csv", "--no-report", "--n-column-clusters", "1").stdout
    (line,) = (line for line in said.splitlines() if "high where the rest" in line)
    assert line.split(": ")[1] in ("mass", "acid")


def test_zip_codes_are_categories_unless_told_otherwise(ccot, tmp_path):
    codes = ["01234", "02139", "94110"]
    body = (f"{codes[i % 3]},{RNG.normal(5 * (i % 3)):.2f},{RNG.normal():.2f}" for i in range(60))
    (tmp_path / "a.csv").write_text("\n".join(["zip,x,y", *body]) + "\n")
    said = ccot("fit", tmp_path / "a.csv", "--no-report", "--out", tmp_path / "out").stdout
    assert "codes made of digits used as categories (zip)" in said
    assert "zip = 01234 100 %" in said
    said = ccot("fit", tmp_path / "a.csv", "--dry-run", "--kind", "zip=number").stdout
    assert "60 x 3" in said
    numbers = ("--kind", "zip=number", "--no-report", "--out", tmp_path / "out")
    assert "codes made of digits" not in ccot("fit", tmp_path / "a.csv", *numbers).stdout


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("word", ["", ",k"])
def test_files_of_any_finite_scale_have_the_same_clusters(ccot, tmp_path, word):
    X = np.repeat([[1.0, 2.0, 3.0], [3.0, 2.5, 1.0]], 15, axis=0) + 0.1 * RNG.normal(size=(30, 3))
    found = []
    for scale in (1.0, 1e200, 1e-200):
        body = (",".join(map(repr, row)) + word for row in (X * scale).tolist())
        (tmp_path / "a.csv").write_text("\n".join([f"a,b,c{word}", *body]) + "\n")
        ccot("fit", tmp_path / "a.csv", "--out", tmp_path / "out")
        found.append([row["cluster"] for row in rows_of(tmp_path / "out" / "row_labels.csv")])
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) == 2


@pytest.mark.parametrize("first", ["name", "day", "id", "price"])
@pytest.mark.parametrize("word", [False, True])
def test_a_data_frame_has_the_clusters_of_the_file(ccot, tmp_path, first, word):
    pd = pytest.importorskip("pandas")
    kinds, n = np.arange(40) % 2, 40
    names = {
        "name": [f"n{i}" for i in range(n)],
        "day": [f"2020-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in range(n)],
        "id": (RNG.permutation(n) * 37 + 5).tolist(),
        "price": [f"${5 + i}" for i in range(n)],
    }
    frame = pd.DataFrame({first: names[first]})
    for column in "abc":
        frame[column] = kinds * 3 + RNG.normal(size=n)
    if word:
        frame["k"] = [["x", "y"][kind] for kind in kinds]
    frame.to_csv(tmp_path / "a.csv", index=False)
    ccot("fit", tmp_path / "a.csv", "--no-report", "--out", tmp_path / "out")
    found = [int(row["cluster"]) for row in rows_of(tmp_path / "out" / "row_labels.csv")]
    read = pd.read_csv(tmp_path / "a.csv")
    if first == "day":
        read["day"] = pd.to_datetime(read["day"])
    model = TransportCoclustering(random_state=0).fit(read)
    assert model.row_labels_.tolist() == found
    assert model.predict(read).tolist() == found
    assert (
        TransportCoclustering(random_state=0).fit(tmp_path / "a.csv").row_labels_.tolist() == found
    )
    ccot(
        "predict", tmp_path / "out" / "model.ccot", tmp_path / "a.csv", "--out", tmp_path / "p.csv"
    )
    assert [int(row["cluster"]) for row in rows_of(tmp_path / "p.csv")] == found


def test_rows_without_a_header_are_rows_when_they_are_placed(ccot, tmp_path):
    body = [f"{i % 9},{i * 7 % 9},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(body) + "\n")
    ccot("fit", tmp_path / "a.csv", "--no-report", "--out", tmp_path / "out")
    (tmp_path / "part.csv").write_text("1,2,a\n" + "\n".join(body[:5]) + "\n")
    ccot(
        "predict",
        tmp_path / "out" / "model.ccot",
        tmp_path / "part.csv",
        "--out",
        tmp_path / "p.csv",
    )
    assert len(rows_of(tmp_path / "p.csv")) == 6


def test_a_column_named_as_the_one_of_row_names_is_placed(ccot, tmp_path):
    body = [f"r{i},{i % 2},{'ab'[i % 2]},{i * 3 % 7}" for i in range(30)]
    (tmp_path / "a.csv").write_text("\n".join(["area,area,k,x", *body]) + "\n")
    ccot("fit", tmp_path / "a.csv", "--no-report", "--out", tmp_path / "out")
    ccot(
        "predict", tmp_path / "out" / "model.ccot", tmp_path / "a.csv", "--out", tmp_path / "p.csv"
    )
    assert len(rows_of(tmp_path / "p.csv")) == 30


def test_the_column_of_infinite_values_is_named(ccot, tmp_path):
    (tmp_path / "a.csv").write_text("l,u,k\n1,2,a\n3,inf,b\n4,5,a\n")
    outcome = ccot("fit", tmp_path / "a.csv", code=2)
    assert "some values of column 'u' are infinite" in outcome.stderr


def test_listed_ratings_are_one_matrix_whatever_values_columns_have(ccot, tmp_path):
    """Some films have two kinds of ratings only, which alone would read as yes and no."""
    rng = np.random.default_rng(0)
    stars = rng.integers(1, 6, (60, 20))
    stars[:, :10] = rng.integers(3, 5, (60, 10))
    listed = np.argwhere(rng.random(stars.shape) < 0.4)
    rated = (f"u{user},film {film},{stars[user, film]}" for user, film in listed)
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(["user,film,rating", *rated]) + "\n")
    ccot("fit", path, "--long", "--unlisted", "missing", "--out", tmp_path / "out")
    model = load_model(tmp_path / "out" / "model.ccot")
    assert model.family_ != "mixed"
    assert len(model.column_labels_) == 20
    ccot("predict", tmp_path / "out" / "model.ccot", path, "--out", tmp_path / "new.csv")
    assert len((tmp_path / "new.csv").read_text().splitlines()) == 61
