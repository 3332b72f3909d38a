"""``ccot fit-ratings``, ``recommend`` and ``serve``: from a table of ratings to recommendations."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from ccot.cli.options import Quiet, option

if TYPE_CHECKING:
    from ccot.cli.progress import StepProgress
    from ccot.recommend import BlockRecommender, User
    from ccot.recommend.names import NameIndex

Model = Annotated[Path, Argument(metavar="MODEL", help="Model file of `ccot fit-ratings`.")]
MOVIELENS = "movielens-100k"
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")  # requests put IPv6 in brackets
# With a star for whatever is before the last names, or for all hosts.
_HOST = re.compile(r"\*|(\*\.)?[\w-]+(\.[\w-]+)*|\[?[\da-fA-F:.]+]?", re.ASCII)

By = StrEnum("By", ["liking", "rating"])
LogLevel = StrEnum("LogLevel", ["critical", "error", "warning", "info", "debug"])


def fit_ratings(
    ratings: Annotated[
        str,
        Argument(
            metavar="RATINGS",
            help="Table of user, item and rating, text or Parquet; `-` for the standard input; or "
            f"`{MOVIELENS}`, which is downloaded if necessary.",
        ),
    ],
    out: Path = option("Model file to write.", default=Path("ratings.ccot")),
    items: Path | None = option(
        "Table of the items: the first column holds the names used in RATINGS, another one their "
        "titles. [default: names of RATINGS]"
    ),
    users: Path | None = option("Table of the users, in the same form, with their names."),
    encoding: str = option("Encoding of the tables, such as latin-1.", default="utf-8-sig"),
    seed: int = option("Seed of the co-clustering.", default=0, min=0),
    quiet: Quiet = False,
) -> None:
    """Co-cluster users and items, and keep a recommender.

    For example:

    - `ccot fit-ratings ratings.csv --items films.csv --out films.ccot`
    - `ccot fit-ratings movielens-100k`
    """
    from ccot.cli.progress import ConsoleProgress
    from ccot.recommend import BlockRecommender

    progress = ConsoleProgress(quiet)
    with progress.step(f"reading {ratings}") as step:
        matrix, names = _movielens() if ratings == MOVIELENS else _read(ratings, step, encoding)
    for what, table in (("item", items), ("user", users)):
        if table is not None:
            ids = names[f"{what}_ids"] = names.get(f"{what}_ids", names[f"{what}_names"])
            names[f"{what}_names"] = _titles(read_facts(table, ids, what, encoding), ids, table)
    with progress.step("fitting") as step:
        model = BlockRecommender(random_state=seed, verbose=step).fit(matrix, **names)
    path = model.save(out)
    (n_users, n_items), shape = model.ratings_.shape, model.block_means_.shape
    if not quiet:
        typer.echo(f"{n_users} users in {shape[0]} clusters, {n_items} items in {shape[1]}: {path}")


def recommend(
    model: Model,
    user: str | None = option("Name of a user of the fit."),
    rate: list[str] | None = option("A rating by a new user, `ITEM=RATING`; can be repeated."),
    n: int = option("Number of recommendations.", "--n", "-n", default=10, min=1),
    by: By = option("Sort by liking in the group, or by rating.", default=By.liking),
    seen: bool = option("Include items that the user has rated.", "--seen", default=False),
    explain: str | None = option("Explain the predicted rating of this item instead."),
    as_json: bool = option("Write JSON.", "--json", default=False),
) -> None:
    """Recommend items to a user of the fit (--user) or to someone new (--rate, or neither).

    For example:

    - `ccot recommend ratings.ccot --user 42`
    - `ccot recommend ratings.ccot --rate "Fargo (1996)=5" --rate "Heat (1995)=2" -n 5`
    """
    from ccot.recommend import load_recommender
    from ccot.recommend.names import NameIndex

    if user is not None and rate:
        raise ValueError("pass --user or --rate, not both")
    fitted = load_recommender(model)
    users = NameIndex(fitted.user_names_, "user", fitted.user_ids_)
    items = NameIndex(fitted.item_names_, "item", fitted.item_ids_)
    someone = _visitor(fitted, items, rate or []) if user is None else users.find(user)
    if explain is not None:
        told, names = fitted.explain(someone, items.find(explain)), fitted.user_names_
        typer.echo(json.dumps(told.as_record(names), indent=1) if as_json else told.in_words(names))
        return
    found = fitted.recommend(someone, n, exclude_seen=not seen, by=str(by))
    lines = [vars(one) | {"item": fitted.item_names_[one.item]} for one in found]
    if as_json:
        typer.echo(json.dumps(lines, indent=1))
        return
    typer.echo("rating  liked by  item")
    for line in lines:
        typer.echo(f"{line['rating']:6.2f}  {line['liking']:8.0%}  {line['item']}")


def serve(
    model: Model,
    host: str = option("Address to listen on.", default="127.0.0.1"),
    port: int = option("Port to listen on.", default=8000, min=0, max=65535),
    workers: int = option("Processes.", default=1, min=1, max=256),
    log_level: LogLevel = option("How much to log.", default=LogLevel.warning),
    allow_host: list[str] | None = option(
        "Host name that requests may use; can be repeated. By default the names of this "
        "machine if it listens to this machine only, otherwise all names."
    ),
    token_file: Path | None = option(
        "File with a token that requests must send: Authorization: Bearer TOKEN."
    ),
) -> None:
    """Serve labels, recommendations and explanations over HTTP; /docs describes them.

    For example:

    - `ccot serve ratings.ccot --port 8080 --workers 4`
    - `ccot serve ratings.ccot --host 0.0.0.0 --allow-host films.example.org --token-file token`
    """
    from ccot.io.binary import check_installed

    check_installed("uvicorn", "services", "serve")
    from ccot.recommend.server import Service, check_address, load_app, run_service

    if wrong := [one for one in allow_host or () if not _HOST.fullmatch(one)]:
        examples = "films.example.org, *.example.org, or * for all"
        raise ValueError(f"--allow-host {wrong[0]!r} is not the name of a host: write {examples}")
    hosts = allow_host or (_LOOPBACK if host in _LOOPBACK else ("*",))
    service = Service(str(model), ",".join(hosts), str(token_file or ""))
    # A model that cannot be served is refused here, not in every worker.
    load_app(service)
    check_address(host, port)
    typer.echo(f"serving {model} on http://{host}:{port} (stop with Ctrl+C)")
    run_service(service, host=host, port=port, workers=workers, log_level=str(log_level))


def _visitor(model: BlockRecommender, known: NameIndex, rate: list[str]) -> User:
    """Return someone new by ratings of items."""
    items, ratings = [], []
    for given in rate:
        name, _, rating = given.rpartition("=")
        try:
            ratings.append(float(rating))
        except ValueError:
            raise ValueError(f"--rate {given!r}: write ITEM=RATING, as 'Fargo (1996)=5'") from None
        items.append(known.find(name))
    return model.new_user(items, ratings)


def _movielens() -> tuple[Any, dict[str, Any]]:
    from ccot.datasets import fetch_movielens_100k

    found = fetch_movielens_100k()
    users, items = ([str(i + 1) for i in range(size)] for size in found.data.shape)
    titles = _told_apart(found.titles.tolist(), items)
    return found.data, {"user_names": users, "item_ids": items, "item_names": titles}


def _read(source: str, step: StepProgress, encoding: str) -> tuple[Any, dict[str, Any]]:
    from ccot.io import read_matrix

    table = read_matrix(source, long=True, aggregate="mean", encoding=encoding, progress=step.share)
    for note in table.notes:
        typer.echo(f"note: {note}", err=True)
    return table.values, {"user_names": table.row_names, "item_names": table.column_names}


def _told_apart(titles: list[str], ids: Sequence[str]) -> list[str]:
    """Return titles that differ: some are listed twice, and their identifiers tell them apart."""
    times = Counter(titles)
    return [t if times[t] == 1 else f"{t} #{i}" for t, i in zip(titles, ids, strict=True)]


def read_facts(path: Path, ids: Sequence[str], what: str, encoding: str) -> dict[str, list[Any]]:
    """Return the columns of a table, in the order of the identifiers, None where it has none."""
    from ccot.io import InputError, read_table

    table = read_table(path, index_col=0, encoding=encoding)
    places = {name: place for place, name in enumerate(table.row_names or ())}
    found = [places.get(one) for one in ids]
    if found.count(None) == len(found):
        raise InputError(
            f"no {what} of the ratings is in the first column of {path}: {ids[0]!r} is not among "
            f"{', '.join(map(repr, list(places)[:3]))}"
        )
    return {
        name: [None if place is None else column[place] for place in found]
        for name, column in table.columns.items()
    }


def _titles(facts: dict[str, list[Any]], ids: Sequence[str], path: Path) -> list[str]:
    """Return the column of titles or names: that which is called so, or the first that names."""
    named = [name for name in facts if name.casefold() in ("title", "name")]
    words = [n for n, cells in facts.items() if len(set(cells)) > len(cells) / 2]
    column = next((n for n in named + words if any(isinstance(c, str) for c in facts[n])), None)
    if column is None:
        raise ValueError(f"{path} has no column of names: call one `title` or `name`")
    return _told_apart([str(cell or ids[i]) for i, cell in enumerate(facts[column])], ids)
