"""Quick fits that reports are made of."""

import numpy as np
import scipy.sparse as sp

from ccot import CCOT, TransportCoclustering
from ccot.datasets import load_simulated, make_latent_blocks

TABLE = [[4, 0, 2], [1, 5, 1]]


def crisp():
    """A crisp matrix of 2 x 3 blocks, and CCOT's answer."""
    data = make_latent_blocks(TABLE, 60, 45, sigma=0.05, random_state=0).data
    return data, CCOT(n_samplings=4, random_state=0).fit(data)


def noisy():
    """A noisy set, and TransportCoclustering's answer, numbers found."""
    data = load_simulated("D3", random_state=0, sigma=2.0).data
    return data, TransportCoclustering(n_init=2, random_state=0).fit(data)


def text_like(n_rows=3891, n_columns=4303, n_topics=3, seed=0):
    """Word counts of documents on one topic each, where every topic has words of its own."""
    rng = np.random.default_rng(seed)
    topic_of_row = rng.integers(0, n_topics, n_rows)
    topic_of_column = rng.integers(0, n_topics + 1, n_columns)
    popularity = rng.pareto(1.2, n_columns) + 0.2
    rows, columns = [], []
    for topic in range(n_topics):
        own = np.where(topic_of_column == topic, 6.0, np.where(topic_of_column == n_topics, 1, 0.1))
        share = popularity * own / (popularity * own).sum()
        documents = np.flatnonzero(topic_of_row == topic)
        lengths = rng.integers(25, 70, len(documents))
        rows.append(np.repeat(documents, lengths))
        columns.append(rng.choice(n_columns, lengths.sum(), p=share))
    places = np.concatenate(rows), np.concatenate(columns)
    counts = sp.coo_array((np.ones(len(places[0])), places), shape=(n_rows, n_columns))
    return sp.csr_array(counts), topic_of_row, topic_of_column


def ratings_like(n_rows=943, n_columns=1682, seed=0):
    """Ratings of 1 to 5 where there is one, else 0; some users and items are much busier."""
    rng = np.random.default_rng(seed)
    user, item = rng.integers(0, 3, n_rows), rng.integers(0, 4, n_columns)
    busy = np.outer(rng.pareto(1.5, n_rows) + 0.2, rng.pareto(1.5, n_columns) + 0.05)
    liking = rng.uniform(0.3, 2.0, (3, 4))[user][:, item]
    stars = np.rint(rng.normal(rng.uniform(2.0, 4.5, (3, 4))[user][:, item], 0.8)).clip(1, 5)
    seen = rng.random((n_rows, n_columns)) < np.clip(0.05 * busy * liking, 0, 0.9)
    return np.where(seen, stars, 0.0)
