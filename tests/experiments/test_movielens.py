"""The MovieLens study: on a small set of the same form, and on the real one where it is."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from ccot.cli import app
from ccot.datasets import fetch_movielens_100k
from ccot.estimators.ccot_gw import CCOTGW
from ccot.experiments.movielens import PAPER_TITLES, describe_end, describe_steps, describe_users
from ccot.experiments.movielens import run as run_study

GENRES = ("unknown", "Action", "Drama")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Files of 64 users and 72 movies; the second half of both prefers the other genre."""
    folder = tmp_path_factory.mktemp("movielens")
    rng = np.random.default_rng(0)
    titles = [*PAPER_TITLES["first"], *PAPER_TITLES["last"]]
    titles += [f"Film {number} (1990)" for number in range(72 - len(titles))]
    ratings = []
    for user in range(64):
        for movie in range(72):
            same = (user < 32) == (movie < 36)
            if rng.random() < (0.6 if same else 0.1):
                rating = int(rng.integers(3, 6) if same else rng.integers(1, 4))
                ratings.append(f"{user + 1}\t{movie + 1}\t{rating}\t0")
    items = [
        f"{number}|{title}|01-Jan-{1980 if number <= 36 else 1995}||link|0|"
        + ("1|0" if number <= 36 else "0|1")
        for number, title in enumerate(titles, 1)
    ]
    people = [
        f"{number}|{20 if number <= 32 else 50}|{'M' if number <= 32 else 'F'}|"
        f"{'student' if number <= 32 else 'doctor'}|0"
        for number in range(1, 65)
    ]
    genres = [f"{name}|{number}" for number, name in enumerate(GENRES)]
    files = {"u.data": ratings, "u.item": items, "u.user": people, "u.genre": genres}
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="latin-1")
    return folder


def test_study_writes_its_page(small, tmp_path):
    said = []
    told = {"progress": lambda message, *_: said.append(message)}
    page = run_study(tmp_path, data_home=small, quick=True, **told)
    steps = ["CCOT-GW", "CCOT", "TransportCoclustering", "page"]
    assert [message for message in said if message in steps] == steps
    assert len(said) > len(steps)
    study = json.loads((tmp_path / "movielens.json").read_text())
    for method in study["methods"]:
        assert sum(method["users"]["sizes"]) == 64
        assert sum(method["movies"]["sizes"]) == 72
        assert method["movies"]["clusters"] == len(method["movies"]["sizes"])
    text = (tmp_path / "movielens.md").read_text()
    html = page.read_text()
    for shown in (text, html):
        assert "How much the steps mean" in shown
        assert "Star Wars (1977)" in shown
    assert {path.name for path in tmp_path.glob("*.png")} == {
        "movielens_sizes.png",
        "movielens_summary.png",
        "movielens_curves.png",
    }


def test_groups_are_told_by_who_they_are(small):
    movies = fetch_movielens_100k(small)
    young, old = describe_users(movies, (np.arange(64) >= 32).astype(int))
    assert (young["median_age"], old["median_age"]) == (20, 50)
    assert (young["women"], old["women"]) == (0, 1)
    assert young["occupations"] == [["student", 2.0]]
    assert young["genres"][0][0] == "Action"
    assert old["genres"][0][0] == "Drama"


@pytest.mark.slow
def test_command(small, tmp_path):
    arguments = ["paper", "movielens", "--quick", "--out", tmp_path, "--data-home", small]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    assert "movielens.html" in result.output


@pytest.mark.slow
def test_study_finds_what_the_paper_found(data_home):
    if not (data_home / "ml-100k" / "u.data").is_file():
        pytest.skip(f"no ml-100k at {data_home}: the repository does not ship it")
    movies = fetch_movielens_100k(data_home)
    model = CCOTGW(reg=1, loss="kl", detector="authors").fit(movies.data.toarray())
    assert (model.n_row_clusters_, model.n_column_clusters_) == (9, 15)
    for label, titles in zip((0, 14), PAPER_TITLES.values(), strict=True):
        numbers = [int(np.flatnonzero(movies.titles == title)[0]) for title in titles]
        assert (model.column_labels_[numbers] == label).all()
    told = describe_steps(movies, "CCOT-GW", model)
    assert told["users"]["sizes"] == [170, 97, 200, 106, 105, 63, 55, 60, 87]
    assert told["users"]["jumps_significant"] == told["movies"]["jumps_significant"] == 0
    first = [found["title"] for found in describe_end(movies, model, 0)["by_scaling"]]
    assert first[0] == "Star Wars (1977)"
