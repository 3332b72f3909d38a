"""Ratings: BlockRecommender beside rivals in the same folds of MovieLens-100K; new users online.

Three parts, each stored in a file of its own: errors of predicted ratings and quality of lists of
ten (5 folds; rivals from scikit-surprise and implicit where they are installed), agreement of
online labels with a refit, and the time of one request.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from benchmarks.data import need_data
from benchmarks.record import store
from ccot import TransportCoclustering
from ccot.datasets import fetch_movielens_100k
from ccot.recommend import BlockRecommender

# The defaults were settled on folds of seed 0 and splits of other seeds.
FOLD_SEED, SPLIT_SEEDS = 1, range(200, 220)
LIKED, LENGTH = 4, 10
SHARE_NEW = 0.1

Ratings = sp.csr_array
Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]


def folds(ratings: Ratings, n_folds: int = 5) -> list[tuple[Ratings, Ratings]]:
    """Pairs of training and test ratings."""
    entries = ratings.tocoo()
    (users, items), values = entries.coords, entries.data
    number = np.random.default_rng(FOLD_SEED).permutation(len(values)) % n_folds

    def part(mask: np.ndarray) -> Ratings:
        return sp.csr_array((values[mask], (users[mask], items[mask])), shape=ratings.shape)

    return [(part(number != k), part(number == k)) for k in range(n_folds)]


def recommender(**options) -> Callable[[Ratings], tuple[Predict, np.ndarray | None]]:
    """Ours: predicts, and scores every item for every user by liking."""

    def fit(train: Ratings):
        model = BlockRecommender(random_state=0, **options).fit(train)
        return model.predict, model._liking[model.user_labels_]

    return fit


def blocks(number: int) -> dict:
    return {"coclustering": TransportCoclustering(number, number, random_state=0)}


def popularity(train: Ratings):
    liked = np.asarray((train >= LIKED).sum(axis=0)).ravel().astype(np.float64)
    return None, np.tile(liked, (train.shape[0], 1))


def als(train: Ratings):
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors=32, regularization=0.1, random_state=0, num_threads=1)
    seen = sp.csr_matrix(train >= LIKED, dtype=np.float32)
    model.fit(seen, show_progress=False)
    return None, np.asarray(model.user_factors) @ np.asarray(model.item_factors).T


def surprise(name: str, **options):
    """One of scikit-surprise's, with its default settings."""

    def fit(train: Ratings):
        import pandas as pd
        import surprise as library

        entries = train.tocoo()
        frame = pd.DataFrame({"u": entries.coords[0], "i": entries.coords[1], "r": entries.data})
        data = library.Dataset.load_from_df(frame, library.Reader(rating_scale=(1, 5)))
        np.random.seed(0)  # its algorithms draw from the global generator  # noqa: NPY002
        model = getattr(library, name)(**options).fit(data.build_full_trainset())

        def predict(users: np.ndarray, items: np.ndarray) -> np.ndarray:
            pairs = zip(users.tolist(), items.tolist(), strict=True)
            return np.array([model.predict(user, item).est for user, item in pairs])

        return predict, None

    return fit


METHODS = {
    "BlockRecommender": recommender(),
    "BlockRecommender, 20 x 20": recommender(**blocks(20)),
    "BlockRecommender, likes": recommender(view="likes"),
    "BlockRecommender, likes, 20 x 20": recommender(view="likes", **blocks(20)),
    "BlockRecommender, no blocks": recommender(**blocks(1)),
    "Surprise CoClustering": surprise("CoClustering"),
    "Surprise BaselineOnly": surprise("BaselineOnly", verbose=False),
    "Surprise SVD": surprise("SVD"),
    "Surprise KNNBaseline": surprise("KNNBaseline", verbose=False),
    "popularity": popularity,
    "implicit ALS": als,
}


def score_lists(scores: np.ndarray, train: Ratings, test: Ratings) -> dict[str, float]:
    """Precision and NDCG of the ten best unseen items; relevant is what the test fold likes."""
    scores = scores.astype(np.float64).copy()
    scores[train.tocoo().coords] = -np.inf
    relevant = (test >= LIKED).toarray() & (test.toarray() > 0)
    kept = relevant.any(axis=1)
    best = np.argsort(-scores[kept], axis=1, kind="stable")[:, :LENGTH]
    hits = np.take_along_axis(relevant[kept], best, axis=1)
    discount = 1 / np.log2(np.arange(2, LENGTH + 2))
    most = np.minimum(relevant[kept].sum(axis=1), LENGTH)
    ideal = np.cumsum(discount)[most - 1]
    return {"precision": float(hits.mean()), "ndcg": float((hits @ discount / ideal).mean())}


def compare(ratings: Ratings) -> list[dict]:
    cells = []
    for name, fit in METHODS.items():
        seen = []
        for train, test in folds(ratings):
            start = time.perf_counter()
            predict, scores = fit(train)
            trial = {"seconds": time.perf_counter() - start}
            if predict is not None:
                entries = test.tocoo()
                error = predict(*entries.coords) - entries.data
                trial |= {"rmse": float(np.sqrt((error**2).mean()))}
                trial |= {"mae": float(np.abs(error).mean())}
            if scores is not None:
                trial |= score_lists(scores, train, test)
            seen.append(trial)
        means = {key: round(float(np.mean([t[key] for t in seen])), 4) for key in seen[0]}
        cells.append({"method": name, **means, "folds": [_rounded(trial) for trial in seen]})
        print({key: value for key, value in cells[-1].items() if key != "folds"}, flush=True)
    return cells


def of_missing_entries() -> BlockRecommender:
    """Blocks of the ratings alone; 4 x 4, the numbers that the others find."""
    blocks = TransportCoclustering(4, 4, family="gaussian", random_state=0)
    return BlockRecommender(blocks, view="nan")


GROUPINGS: dict[str, Callable[[], BlockRecommender]] = {
    'view="zeros"': lambda: BlockRecommender(random_state=0),
    'view="likes"': lambda: BlockRecommender(view="likes", random_state=0),
    'view="nan", 4 x 4': of_missing_entries,
}


def agreement(ratings: Ratings) -> list[dict]:
    """Labels of held-out users: placed online by a fit without them, and in a fit with them."""
    everyone = {name: make().fit(ratings) for name, make in GROUPINGS.items()}
    cells = []
    for seed in SPLIT_SEEDS:
        order = np.random.default_rng(seed).permutation(ratings.shape[0])
        new, old = np.split(order, [round(SHARE_NEW * len(order))])
        for name, refit in everyone.items():
            model = GROUPINGS[name]().fit(ratings[old])
            stayed = adjusted_rand_score(refit.user_labels_[old], model.user_labels_)
            cell = {"groups": name, "seed": seed, "clusters": _shape(model), "refit": _shape(refit)}
            cell["old_users"] = round(float(stayed), 4)
            for shown in (None, 50, 20, 10):
                labels = [place(model, ratings, user, shown, seed) for user in new]
                cell["all" if shown is None else str(shown)] = round(
                    float(adjusted_rand_score(refit.user_labels_[new], labels)), 4
                )
            cells.append(cell)
            print(cell, flush=True)
    return cells


def place(
    model: BlockRecommender, ratings: Ratings, user: int, shown: int | None, seed: int
) -> int:
    """Label of a user of whom at most so many ratings are shown."""
    within = slice(ratings.indptr[user], ratings.indptr[user + 1])
    items, values = ratings.indices[within], ratings.data[within]
    if shown is not None and len(items) > shown:
        kept = np.random.default_rng([seed, user]).permutation(len(items))[:shown]
        items, values = items[kept], values[kept]
    return model.new_user(items, values).label


def latency(ratings: Ratings, n_requests: int) -> dict:
    """Milliseconds from a handful of ratings to a label and ten recommendations."""
    model = BlockRecommender(random_state=0).fit(ratings)
    rng = np.random.default_rng(0)
    times, processor = [], []
    for _ in range(n_requests):
        user = int(rng.integers(ratings.shape[0]))
        within = slice(ratings.indptr[user], ratings.indptr[user + 1])
        items, values = ratings.indices[within], ratings.data[within]
        start, busy = time.perf_counter(), time.thread_time()
        visitor = model.new_user(items, values)
        found = model.recommend(visitor, 10)
        times.append(time.perf_counter() - start)
        processor.append(time.thread_time() - busy)
        assert len(found) == 10
    return {"requests": n_requests, "clock": _quantiles(times), "processor": _quantiles(processor)}


def _quantiles(seconds: list[float]) -> dict[str, float]:
    """Milliseconds."""
    names = ("median", "p90", "p99", "p999", "largest")
    found = np.quantile(1000 * np.array(seconds), [0.5, 0.9, 0.99, 0.999, 1.0])
    return dict(zip(names, found.round(3).tolist(), strict=True))


def _rounded(trial: dict) -> dict:
    return {key: round(value, 5) for key, value in trial.items()}


def _shape(model: BlockRecommender) -> list[int]:
    return list(model.block_means_.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("compare", "agreement", "latency")
    parser.add_argument("--parts", nargs="*", choices=parts, default=list(parts))
    parser.add_argument("--requests", type=int, default=10_000)
    arguments = parser.parse_args()
    ratings = fetch_movielens_100k(need_data()).data
    for part in arguments.parts:
        found = {
            "compare": lambda: {"cells": compare(ratings)},
            "agreement": lambda: {"cells": agreement(ratings)},
            "latency": lambda: latency(ratings, arguments.requests),
        }[part]()
        print(f"stored {store(f'ratings_{part}', found)}", flush=True)


if __name__ == "__main__":
    main()
