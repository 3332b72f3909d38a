import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from ccot.cli import app
from ccot.recommend import load_recommender


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two groups: even users like even films."""
    path = tmp_path_factory.mktemp("ratings") / "ratings.csv"
    rng = np.random.default_rng(0)
    lines = ["user,film,rating"]
    for user in range(40):
        for film in range(30):
            if rng.random() < (0.7 if (user + film) % 2 == 0 else 0.1):
                lines.append(f"u{user},film {film},{5 if (user + film) % 2 == 0 else 2}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def model(table):
    out = table.with_name("model.ccot")
    result = run("fit-ratings", table, "--out", out)
    assert result.exit_code == 0, result.output
    assert "40 users in " in result.output
    return out


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_recommendations_for_a_user(model):
    result = run("recommend", model, "--user", "u2", "--json", "-n", 2)
    assert result.exit_code == 0
    films = [line["item"] for line in json.loads(result.output)]
    assert len(films) == 2
    assert all(int(film.split()[1]) % 2 == 0 for film in films)
    plain = run("recommend", model, "--user", "u2", "-n", 2).output
    head, *lines = plain.splitlines()
    assert head == "rating  liked by  item"
    assert [line.split("%  ")[1] for line in lines] == films


def test_recommendations_for_someone_new(model):
    result = run("recommend", model, "--rate", "film 1=5", "--rate", "film 3=5", "--json", "-n", 2)
    films = [line["item"] for line in json.loads(result.output)]
    assert all(int(film.split()[1]) % 2 == 1 for film in films)
    assert not {"film 1", "film 3"} & set(films)


def test_nobody_in_particular(model):
    assert len(run("recommend", model).output.splitlines()) == 11


def test_explanation(model):
    result = run("recommend", model, "--user", "u2", "--explain", "film 4")
    assert "block of user cluster" in result.output
    told = run("recommend", model, "--user", "u2", "--explain", "film 4", "--json").output
    assert json.loads(told)["text"] == result.output.rstrip("\n")
    told = run("recommend", model, "--explain", "film 4", "--json").output
    assert json.loads(told)["block_mean"] is None


def test_what_recommends_does_not_predict(model, table):
    result = run("predict", model, table)
    assert result.exit_code == 2
    assert "is of `ccot fit-ratings`: pass it to `ccot recommend`" in result.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--user", "u99"], "there is no user 'u99'; did you mean"),
        (["--rate", "film 99=5"], "there is no item 'film 99'"),
        (["--rate", "film 1"], "write ITEM=RATING"),
        (["--rate", "film 1=9"], "ratings lie between 2 and 5"),
        (["--user", "u1", "--rate", "film 1=5"], "not both"),
    ],
)
def test_errors_say_what_is_wrong(model, arguments, reason):
    result = run("recommend", model, *arguments)
    assert result.exit_code == 2
    assert reason in result.output
    assert "Traceback" not in result.output


def test_table_that_is_none(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("user,film,rating\na,b,good\n")
    result = run("fit-ratings", path, "--out", tmp_path / "x.ccot")
    assert result.exit_code == 2
    assert "error:" in result.output
    assert not (tmp_path / "x.ccot").exists()


@pytest.fixture(scope="module")
def titled(table):
    """The same ratings with numbers for names, and tables of titles and of ages."""
    folder = table.parent
    text = table.read_text().replace("film ", "").replace("\nu", "\n")
    (folder / "numbers.csv").write_text(text)
    films = "".join(
        f"{k},{'Twice' if k in (5, 6) else f'Film no. {k}'},{k % 3}\n" for k in range(29)
    )
    (folder / "films.csv").write_text("film,title,kind\n" + films)
    users = "".join(f"{k},{20 + k},{'even' if k % 2 == 0 else 'odd'}\n" for k in range(40))
    (folder / "users.csv").write_text("user,age,parity\n" + users)
    out = folder / "titled.ccot"
    result = run(
        "fit-ratings", folder / "numbers.csv", "--items", folder / "films.csv", "--out", out
    )
    assert result.exit_code == 0, result.output
    return out


def test_titles_and_identifiers_are_names(titled):
    by_id = run("recommend", titled, "--rate", "1=5", "--rate", "3=5")
    assert by_id.exit_code == 0, by_id.output
    assert (
        by_id.output == run("recommend", titled, "--rate", "Film no. 1=5", "--rate", "3=5").output
    )
    assert "Film no. " in by_id.output
    # Titles that are listed twice are told apart; what is not listed keeps its number.
    known = load_recommender(titled)
    assert {"Twice #5", "Twice #6", "29"} <= set(known.item_names_)
    told = run("recommend", titled, "--user", 2, "--explain", 4).output
    rated = re.findall(r"user (\d+) of the same group rated it", told)
    assert rated
    assert all(int(name) % 2 == 0 for name in rated)


def test_page_of_ratings(titled, tmp_path):
    folder = titled.parent
    page = tmp_path / "page.html"
    result = run("report", titled, "--users", folder / "users.csv", "--out", page)
    assert result.exit_code == 0, result.output
    content = json.loads(re.search(r'id="content">(.*?)</script>', page.read_text(), re.S)[1])
    assert content["matrix"]["missing"]
    assert [track["name"] for track in content["annotations"]["row"]] == ["age", "parity"]
    means = load_recommender(titled).block_means_
    np.testing.assert_allclose(np.array(content["models"][0]["means"], float), means)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["fit-ratings", "numbers.csv", "--items", "users.csv"], "no column of names"),
        (["fit-ratings", "ratings.csv", "--items", "films.csv"], "no item of the ratings is in"),
    ],
)
def test_tables_that_do_not_belong(titled, arguments, reason, monkeypatch):
    monkeypatch.chdir(titled.parent)
    result = run(*arguments, "--out", "none")
    assert result.exit_code == 2
    assert reason in result.output
