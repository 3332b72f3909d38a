import json

import numpy as np
import pytest
from typer.testing import CliRunner

from ccot.cli import app


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
    assert [line.split("%  ")[1] for line in plain.splitlines()] == films


def test_recommendations_for_someone_new(model):
    result = run("recommend", model, "--rate", "film 1=5", "--rate", "film 3=5", "--json", "-n", 2)
    films = [line["item"] for line in json.loads(result.output)]
    assert all(int(film.split()[1]) % 2 == 1 for film in films)
    assert not {"film 1", "film 3"} & set(films)


def test_nobody_in_particular(model):
    assert len(run("recommend", model).output.splitlines()) == 10


def test_explanation(model):
    result = run("recommend", model, "--user", "u2", "--explain", "film 4")
    assert "block of user cluster" in result.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--user", "u99"], "no user is called 'u99'; did you mean"),
        (["--rate", "film 99=5"], "no item is called 'film 99'"),
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
