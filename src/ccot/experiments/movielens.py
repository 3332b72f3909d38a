"""The paper's study of MovieLens-100K, and what transport onto blocks makes of the same ratings."""

import json
import os
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import Bunch

from ccot._version import __version__
from ccot.datasets import fetch_movielens_100k
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.estimators.transport import TransportCoclustering
from ccot.experiments.published import PAPER_TITLES
from ccot.persistence.atomic import write_file
from ccot.runtime.run import Progress, no_progress
from ccot.scalings.jumps import LEVEL, detect_jumps

N_TITLES = 5


def run(
    out: str | os.PathLike[str],
    *,
    data_home: str | os.PathLike[str] | None = None,
    seed: int = 0,
    quick: bool = False,
    progress: Progress = no_progress,
) -> Path:
    """Make the study and write its page."""
    from ccot.experiments.movielens_page import write_page

    folder = Path(out)
    movies = fetch_movielens_100k(data_home)
    models = fit_models(movies, seed, quick, progress)
    study = describe(movies, models) | {"seed": seed, "quick": quick, "ccot": __version__}
    write_file(folder / "movielens.json", json.dumps(study, indent=1))
    progress("page")
    return write_page(folder, study, movies, models["CCOT-GW"])


def fit_models(movies: Bunch, seed: int, quick: bool, progress: Progress) -> dict[str, Any]:
    """Fit everything that the study compares, missing ratings being zero as in the paper."""
    matrix = movies.data.toarray()
    common: dict[str, Any] = {"detector": "authors", "random_state": seed}
    models: dict[str, Any] = {
        "CCOT-GW": CCOTGW(reg=1.0, loss="kl", detector="authors"),
        "CCOT-GW, cross-validated": CCOTGW(reg="cv", loss="kl", **common),
        "CCOT": CCOT(reg="cv", sampling="uniform", n_samplings=32 if quick else 500, **common),
        "TransportCoclustering": TransportCoclustering(n_init=30, random_state=seed),
    }
    if quick:
        del models["CCOT-GW, cross-validated"]
    for name, model in models.items():
        progress(name)
        model.set_params(verbose=progress)
        model.fit(movies.data if name == "TransportCoclustering" else matrix)
    return models


def describe(movies: Bunch, models: dict[str, Any]) -> dict[str, Any]:
    """Return everything the page says, as plain values."""
    steps = {name: model for name, model in models.items() if hasattr(model, "row_jumps_")}
    main, blocks = models["CCOT-GW"], models["TransportCoclustering"]
    return {
        "level": LEVEL,
        "methods": [describe_steps(movies, name, model) for name, model in steps.items()],
        "nmi": [_agreement(models, pair) for pair in combinations(models, 2)],
        "movie_clusters": list(describe_movies(movies, main.column_labels_)),
        "user_clusters": list(describe_users(movies, main.row_labels_)),
        "ends": {
            "first": describe_end(movies, main, 0),
            "last": describe_end(movies, main, main.n_column_clusters_ - 1),
        },
        "paper_titles": {
            end: [_where(movies, main, title) for title in titles]
            for end, titles in PAPER_TITLES.items()
        },
        "blocks": {
            "family": blocks.family_,
            "reason": blocks.family_reason_,
            "users": list(describe_users(movies, blocks.row_labels_)),
            "movies": list(describe_movies(movies, blocks.column_labels_)),
            **block_ratings(movies, blocks),
        },
    }


def describe_steps(movies: Bunch, name: str, model: Any) -> dict[str, Any]:
    """Return the numbers of clusters by the authors' detector, and what a test says of them."""
    sides = {}
    for side, log_scaling, jumps, ratings in (
        ("users", model.row_log_scaling_, model.row_jumps_, movies.data),
        ("movies", model.column_log_scaling_, model.column_jumps_, movies.data.tocsc()),
    ):
        ordered = np.sort(log_scaling)
        # All gaps with their evidence, significant or not.
        _, evidence = detect_jumps(ordered, n_jumps=len(ordered) - 1, return_strength=True)
        at_jumps = evidence[jumps - 1]
        sides[side] = {
            "clusters": len(jumps) + 1,
            "sizes": np.diff([0, *jumps.tolist(), len(ordered)]).tolist(),
            "jumps_significant": int((at_jumps >= -np.log10(LEVEL)).sum()),
            "chance_of_strongest": float(10.0 ** -min(at_jumps.max(initial=0.0), 300.0)),
            "activity": float(spearmanr(log_scaling, np.diff(ratings.indptr)).statistic),
            "clusters_by_test": len(detect_jumps(ordered)) + 1,
        }
    return {"method": name, "reg": float(getattr(model, "reg_", model.reg)), **sides}


def describe_movies(movies: Bunch, labels: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield what the movies of each cluster are: how known, how liked, how old, of what kind."""
    by_movie = movies.data.tocsc()
    counts = np.diff(by_movie.indptr)
    overall = movies.genres.mean(axis=0)
    for label in range(labels.max() + 1):
        members = labels == label
        share = movies.genres[members].mean(axis=0)
        favourites = np.flatnonzero(members)[np.argsort(-counts[members], kind="stable")]
        yield {
            "size": int(members.sum()),
            "mean_rating": float(by_movie[:, members].data.mean()),
            "median_ratings": float(np.median(counts[members])),
            "median_year": float(np.nanmedian(movies.years[members])),
            "genres": _striking(movies.genre_names, share, overall, share >= 0.05, 1.2),
            "most_rated": movies.titles[favourites[:N_TITLES]].tolist(),
        }


def describe_users(movies: Bunch, labels: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield who the users of each cluster are: how active, how kind, how old, at what work."""
    counts = np.diff(movies.data.indptr)
    occupations, work = np.unique(movies.occupations, return_inverse=True)
    overall = np.bincount(work) / len(work)
    tastes = movies.data.astype(bool).astype(float) @ movies.genres.astype(float)
    taste = tastes.sum(axis=0) / tastes.sum()
    for label in range(labels.max() + 1):
        members = labels == label
        share = np.bincount(work[members], minlength=len(occupations)) / members.sum()
        own = tastes[members].sum(axis=0) / tastes[members].sum()
        yield {
            "size": int(members.sum()),
            "mean_rating": float(movies.data[members].data.mean()),
            "median_ratings": float(np.median(counts[members])),
            "median_age": float(np.median(movies.ages[members])),
            "women": float((movies.sexes[members] == "F").mean()),
            "occupations": _striking(occupations, share, overall, share >= 0.05, 1.2),
            "genres": _striking(movies.genre_names, own, taste, taste >= 0.01, 1.1),
        }


def _striking(
    names: Any, share: np.ndarray, overall: np.ndarray, frequent: np.ndarray, least: float
) -> list[list[Any]]:
    """Return the names, at most three, whose share is farthest above the overall one."""
    ratio = share / np.maximum(overall, 1e-12)
    order = [k for k in np.argsort(-ratio) if frequent[k] and ratio[k] > least][:3]
    return [[str(names[k]), float(ratio[k])] for k in order]


def describe_end(movies: Bunch, model: Any, label: int) -> dict[str, Any]:
    """Return five titles of a movie cluster by mean rating, and five by scaling."""
    members = np.flatnonzero(model.column_labels_ == label)
    by_movie = movies.data.tocsc()
    counts = np.diff(by_movie.indptr)[members]
    means = np.asarray(by_movie[:, members].sum(axis=0)).ravel() / counts
    scaling = model.column_log_scaling_[members]
    extreme = np.argsort(scaling if label == 0 else -scaling, kind="stable")
    listed = [
        {"title": str(title), "mean_rating": float(mean), "ratings": int(number)}
        for title, mean, number in zip(movies.titles[members], means, counts, strict=True)
    ]
    return {
        "cluster": int(label) + 1,
        "size": len(members),
        "by_rating": [listed[k] for k in np.lexsort((-counts, -means))[:N_TITLES]],
        "by_scaling": [listed[k] for k in extreme[:N_TITLES]],
    }


def block_ratings(movies: Bunch, model: Any) -> dict[str, list[list[float]]]:
    """Return the share of rated pairs and the mean rating of each block; 0 where none is rated."""
    by_user = np.eye(model.n_row_clusters_)[model.row_labels_]
    by_movie = np.eye(model.n_column_clusters_)[model.column_labels_]
    counts = by_user.T @ ((movies.data > 0).astype(float) @ by_movie)
    sums = by_user.T @ (movies.data @ by_movie)
    cells = np.outer(by_user.sum(axis=0), by_movie.sum(axis=0))
    return {
        "share_rated": (counts / cells).tolist(),
        "mean_rating": (sums / np.maximum(counts, 1)).tolist(),
    }


def _where(movies: Bunch, model: Any, title: str) -> dict[str, Any]:
    number = int(np.flatnonzero(movies.titles == title)[0])
    rank = int((model.column_log_scaling_ < model.column_log_scaling_[number]).sum()) + 1
    return {"title": title, "cluster": int(model.column_labels_[number]) + 1, "rank": rank}


def _agreement(models: dict[str, Any], pair: tuple[str, str]) -> dict[str, Any]:
    users, movies = (
        float(normalized_mutual_info_score(*(getattr(models[name], labels) for name in pair)))
        for labels in ("row_labels_", "column_labels_")
    )
    return {"methods": list(pair), "users": users, "movies": movies}
