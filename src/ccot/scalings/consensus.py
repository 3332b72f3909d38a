"""The vote of many draws: on the number of clusters, then on the label of each point."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def number_shares(n_clusters: np.ndarray) -> dict[int, float]:
    """Return the share of draws that found each number of clusters, by ascending number."""
    numbers, counts = np.unique(n_clusters, return_counts=True)
    shares = counts / counts.sum()
    return {int(number): float(share) for number, share in zip(numbers, shares, strict=True)}


def winning_number(n_clusters: np.ndarray) -> int:
    """Return the number found most often, the smaller one in a tie."""
    shares = number_shares(n_clusters)
    return max(shares, key=lambda number: (shares[number], -number))


def vote(
    members: np.ndarray, labels: np.ndarray, agrees: np.ndarray, reference: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each point's label, numbered as in the reference, and the share of its draws for it.

    Only agreeing draws vote; points in none of them keep their label in the reference.
    """
    n_points, n_clusters = len(reference), int(reference.max()) + 1
    drawn = _count(members, n_points)
    if not agrees.all():
        members, labels = members[agrees], labels[agrees]
    n_clusters = max(n_clusters, int(labels.max(initial=0)) + 1)
    matched = match_clusters(labels, reference[members], n_clusters)
    votes = _count(members * n_clusters + matched, n_points * n_clusters).reshape(n_points, -1)
    winner = np.where(votes.max(axis=1) > 0, votes.argmax(axis=1), reference)
    _fill_empty(winner, votes, reference)
    return winner, votes[np.arange(n_points), winner] / np.maximum(drawn, 1)


def _fill_empty(winner: np.ndarray, votes: np.ndarray, reference: np.ndarray) -> None:
    """Give each empty cluster the point with most votes for it."""
    for cluster in np.flatnonzero(np.bincount(winner, minlength=votes.shape[1]) == 0):
        sizes = np.bincount(winner)
        closeness = votes[:, cluster] + 0.5 * (reference == cluster)
        winner[np.argmax(np.where(sizes[winner] > 1, closeness, -1.0))] = cluster


def match_clusters(labels: np.ndarray, reference: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the labels of each draw, renumbered to agree with the reference for most members."""
    n_draws = len(labels)
    cell = (np.arange(n_draws)[:, None] * n_clusters + labels) * n_clusters + reference
    shared = _count(cell, n_draws * n_clusters**2).reshape(n_draws, n_clusters, n_clusters)
    names = shared.argmax(axis=2)
    # If the best matches are all different, they are the optimal assignment.
    clash = (np.sort(names) != np.arange(n_clusters)).any(axis=1)
    for draw in np.flatnonzero(clash):
        names[draw] = linear_sum_assignment(shared[draw], maximize=True)[1]
    return np.take_along_axis(names, labels, axis=1)


def _count(indices: np.ndarray, n_bins: int) -> np.ndarray:
    return np.bincount(indices.ravel(), minlength=n_bins)
