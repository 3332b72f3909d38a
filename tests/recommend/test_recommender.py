import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import SpectralCoclustering

from ccot import CCOT, TransportCoclustering
from ccot.baselines import DoubleKMeans
from ccot.recommend import BlockRecommender, User

TASTES = np.array([[5.0, 2.0, 3.0], [1.0, 4.0, 5.0]])


def make_ratings(n_users=60, n_items=45, share=0.4, noise=0.0, seed=0):
    """Two groups of users, three of items; users and items have offsets of their own."""
    rng = np.random.default_rng(seed)
    users, items = np.arange(n_users) % 2, np.arange(n_items) % 3
    full = TASTES[users][:, items] + noise * rng.standard_normal((n_users, n_items))
    full = np.clip(full, 1, 5)
    return full, np.where(rng.random(full.shape) < share, full, np.nan), users, items


class Known:
    """A co-clustering that is what it is, and places nobody."""

    def __init__(self, rows, columns):
        self.row_labels_, self.column_labels_ = rows, columns

    def fit(self, X):
        raise AssertionError("fitted already")


@pytest.fixture(scope="module")
def fitted():
    full, ratings, users, items = make_ratings()
    return (
        BlockRecommender(Known(users, items), like=4, block_shrinkage=1.0).fit(ratings),
        full,
        ratings,
    )


@pytest.fixture(scope="module")
def found():
    _, ratings, users, items = make_ratings(share=0.5)
    blocks = TransportCoclustering(2, 3, random_state=0)
    return BlockRecommender(blocks).fit(ratings), users, items


def test_rating_is_the_sum_that_is_promised():
    _, ratings, users, items = make_ratings(noise=0.5)
    model = BlockRecommender(
        Known(users, items), user_shrinkage=7, item_shrinkage=4, block_shrinkage=9
    ).fit(ratings)
    where = np.nonzero(~np.isnan(ratings))
    # The slow and obvious least squares: ratings below one row for every penalty.
    n, m = ratings.shape
    design = np.zeros((len(where[0]), n + m))
    design[np.arange(len(where[0])), where[0]] = 1
    design[np.arange(len(where[0])), n + where[1]] = 1
    penalty = np.diag(np.repeat([7.0, 4.0], [n, m]))
    left = ratings[where] - np.nanmean(ratings)
    offsets = np.linalg.solve(design.T @ design + penalty, design.T @ left)
    np.testing.assert_allclose(model.user_offsets_, offsets[:n], atol=1e-6)
    np.testing.assert_allclose(model.item_offsets_, offsets[n:], atol=1e-6)
    left -= design @ offsets
    for g in range(2):
        for k in range(3):
            inside = (users[where[0]] == g) & (items[where[1]] == k)
            effect = left[inside].sum() / (inside.sum() + 9)
            user, item = np.flatnonzero(users == g)[0], np.flatnonzero(items == k)[0]
            plain = np.nanmean(ratings) + offsets[user] + offsets[n + item] + effect
            assert model.predict(user, item) == pytest.approx(np.clip(plain, 1, 5), abs=1e-6)
            assert model.block_means_[g, k] == pytest.approx(ratings[where][inside].mean())


def test_blocks_say_what_offsets_cannot(fitted):
    model, full, ratings = fitted
    users, items = np.nonzero(np.isnan(ratings))
    error = np.abs(model.predict(users, items) - full[users, items])
    assert error.mean() < 0.25
    flat = BlockRecommender(Known(np.zeros(60, int), np.zeros(45, int))).fit(ratings)
    assert np.abs(flat.predict(users, items) - full[users, items]).mean() > 1


def test_predictions_stay_on_the_scale(fitted):
    model, _, ratings = fitted
    users, items = np.indices(ratings.shape)
    predicted = model.predict(users, items)
    assert predicted.shape == ratings.shape
    assert 1 <= predicted.min() <= predicted.max() <= 5


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_ratings_are_the_same_ratings(fitted, form):
    model, _, ratings = fitted
    where = np.nonzero(~np.isnan(ratings))
    sparse = form(sp.coo_array((ratings[where], where), shape=ratings.shape))
    again = clone(model).set_params(coclustering=model.coclustering).fit(sparse)
    np.testing.assert_array_equal(again.user_offsets_, model.user_offsets_)
    np.testing.assert_array_equal(again.block_means_, model.block_means_)


def test_recommended_is_what_the_group_liked(fitted):
    model, _, ratings = fitted
    items = np.arange(ratings.shape[1])
    for user in range(4):
        best = model.recommend(user, 4)
        liked = {0} if user % 2 == 0 else {1, 2}
        assert {int(found.item % 3) for found in best} <= liked
        assert len({found.item for found in best}) == 4
        likings = [found.liking for found in best]
        assert likings == sorted(likings, reverse=True)
        assert not set(np.flatnonzero(~np.isnan(ratings[user]))) & {found.item for found in best}
        every = model.recommend(user, 1000, exclude_seen=False)
        assert sorted(found.item for found in every) == items.tolist()
        by_rating = [found.rating for found in model.recommend(user, 1000, by="rating")]
        assert by_rating == sorted(by_rating, reverse=True)


def test_liking_is_the_shrunk_share_of_the_group(fitted):
    model, _, ratings = fitted
    liked = ratings >= model.like_
    group = liked[0::2]
    first = model.recommend(0, 1, exclude_seen=False)[0]
    overall = liked[:, first.item].mean()
    expected = (group[:, first.item].sum() + 10 * overall) / (len(group) + 10)
    assert first.liking == pytest.approx(expected)


def test_explanation_adds_up_and_names_neighbours(fitted):
    model, _, ratings = fitted
    told = model.explain(0, 3, n_neighbours=3)
    total = told.mean + told.user_offset + told.item_offset + told.block_effect
    assert told.rating == pytest.approx(np.clip(total, 1, 5))
    assert told.rating == model.predict(0, 3)
    inside = ratings[0::2][:, 0::3]
    assert told.block == (0, 0)
    assert told.block_mean == pytest.approx(np.nanmean(inside))
    assert told.block_size == (~np.isnan(inside)).sum()
    assert len(told.neighbours) == 3
    liked = ratings >= model.like_
    shared = [(liked[0] & liked[near.user]).sum() for near in told.neighbours]
    assert shared == [near.shared for near in told.neighbours]
    others = [u for u in range(2, 60, 2) if not np.isnan(ratings[u, 3])]
    assert {near.user for near in told.neighbours} <= set(others)
    assert shared[0] == max((liked[0] & liked[u]).sum() for u in others)
    assert "block of user cluster 0 and item cluster 0" in str(told)


def test_users_of_the_fit_are_placed_where_they_were(found):
    model, _, _ = found
    for user in range(0, 60, 7):
        rated = model.ratings_[[user]]
        again = model.new_user(rated.indices, rated.data)
        assert again.label == model.user_labels_[user]


def test_items_of_the_fit_are_placed_where_they_were(found):
    model, _, _ = found
    ratings = model._by_item
    for item in range(0, 45, 7):
        within = slice(ratings.indptr[item], ratings.indptr[item + 1])
        again = model.new_item(ratings.indices[within], ratings.data[within])
        assert again.label == model.item_labels_[item]


@pytest.mark.parametrize("view", ["likes", "zeros", "nan"])
def test_a_handful_of_ratings_is_enough(view):
    _, ratings, users, items = make_ratings(share=0.5)
    family = "gaussian" if view == "nan" else "auto"
    blocks = TransportCoclustering(2, 3, family=family, random_state=0)
    model = BlockRecommender(blocks, view=view).fit(ratings)
    for taste in (0, 1):
        rated = np.array([0, 1, 2, 3, 4, 5, 6, 7])
        visitor = model.new_user(rated, TASTES[taste][items[rated]])
        assert visitor.label == np.bincount(model.user_labels_[users == taste]).argmax()
        unseen = np.arange(8, 45)
        error = np.abs(model.predict(visitor, unseen) - TASTES[taste][items[unseen]])
        assert error.mean() < 0.6
        assert not {found.item for found in model.recommend(visitor)} & set(rated.tolist())


def test_order_of_ratings_does_not_matter(found):
    model, _, _ = found
    one, other = model.new_user([3, 1, 7], [5, 2, 1]), model.new_user([7, 3, 1], [1, 5, 2])
    assert (one.label, one.offset) == (other.label, other.offset)
    assert model.recommend(one) == model.recommend(other)


@pytest.mark.parametrize(
    "blocks",
    [DoubleKMeans(2, 3, random_state=0), SpectralCoclustering(2, random_state=0), CCOT()],
    ids=["baseline", "scikit-learn", "CCOT"],
)
def test_any_coclustering_will_do(blocks):
    _, ratings, _, items = make_ratings(share=0.6)
    seen = np.nan_to_num(ratings)
    fitted = blocks.fit(seen)
    model = BlockRecommender(fitted, view="zeros").fit(ratings)
    assert model.coclustering_ is fitted
    visitor = model.new_user(np.arange(9), TASTES[0][items[:9]])
    assert visitor.label in model.user_labels_
    assert len(model.recommend(visitor, 5)) == 5


def test_placement_by_loss_finds_the_group(fitted):
    model, _, _ = fitted
    for taste in (0, 1):
        visitor = model.new_user(np.arange(6), TASTES[taste][np.arange(6) % 3])
        assert visitor.label == taste
    for kind in range(3):
        novelty = model.new_item(np.arange(8), TASTES[np.arange(8) % 2, kind])
        assert novelty.label == kind


def test_cold_start_falls_back_to_means(fitted):
    model, _, ratings = fitted
    nobody, nothing = model.new_user([], []), model.new_item([], [])
    assert (nobody.label, nobody.offset) == (-1, 0.0)
    assert model.predict(nobody, nothing) == model.mean_
    assert model.predict(nobody, 4) == np.clip(model.mean_ + model.item_offsets_[4], 1, 5)
    assert model.predict(3, nothing) == np.clip(model.mean_ + model.user_offsets_[3], 1, 5)
    popular = np.argsort(-(ratings >= model.like_).sum(axis=0), kind="stable")[:1]
    best = model.recommend(nobody, 1)[0]
    assert best.liking == (ratings[:, popular] >= model.like_).mean()
    told = model.explain(nobody, 4)
    assert told.neighbours == ()
    assert "no block" in str(told)


def test_users_and_items_without_ratings_are_cold():
    _, ratings, _, _ = make_ratings()
    ratings[5], ratings[:, 7] = np.nan, np.nan
    model = BlockRecommender(TransportCoclustering(2, 3, random_state=0)).fit(ratings)
    assert model.user_labels_[5] == -1
    assert model.item_labels_[7] == -1
    assert model.predict(5, 7) == model.mean_
    assert len(model.recommend(5, 10)) == 10


def test_single_rating_does_not_decide_everything(found):
    model, _, _ = found
    visitor = model.new_user([0], [1.0])
    assert abs(visitor.offset) < 4 / 6


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0, 1], [5]), ValueError, "2 items and 1 ratings"),
        (([0, 0], [5, 4]), ValueError, "has several ratings"),
        (([0], [6]), ValueError, "between 1 and 5"),
        (([0], [np.nan]), ValueError, "between 1 and 5"),
        (([45], [5]), IndexError, "items 0 to 44"),
        (([-1], [5]), IndexError, "items 0 to 44"),
        ((["Star Wars"], [5]), TypeError, "numbers of the fitted matrix"),
    ],
)
def test_bad_ratings_are_refused(found, arguments, error, message):
    with pytest.raises(error, match=message):
        found[0].new_user(*arguments)


def test_bad_requests_are_refused(found):
    model = found[0]
    with pytest.raises(IndexError, match="users 0 to 59"):
        model.predict(60, 0)
    with pytest.raises(ValueError, match="must be at least 1"):
        model.recommend(0, 0)
    with pytest.raises(ValueError, match='use "liking" or "rating"'):
        model.recommend(0, by="magic")
    with pytest.raises(ValueError, match="has no ratings"):
        BlockRecommender().fit(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="60 x 45 users and items, but there are ratings of 3 x 3"):
        BlockRecommender(model.coclustering_).fit(np.ones((3, 3)))


def test_same_seed_same_answers():
    _, ratings, _, _ = make_ratings(24, 15, noise=1.0)
    one, other = (BlockRecommender(random_state=3).fit(ratings) for _ in range(2))
    np.testing.assert_array_equal(one.user_labels_, other.user_labels_)
    assert one.recommend(0) == other.recommend(0)


def test_new_users_are_values(found):
    visitor = found[0].new_user([1], [4])
    assert isinstance(visitor, User)
    with pytest.raises(AttributeError):
        visitor.label = 0
