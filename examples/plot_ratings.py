"""
Users and films
===============

Ratings are a matrix with most entries missing. The ratings here are simulated, because those of
MovieLens may not be redistributed; ``ccot.datasets.fetch_movielens_100k`` downloads them for you.
"""

# %%
# Four groups of users and five genres. A user sees mostly what the group likes, and likes some of
# it. Some users give higher ratings than others, and some films are better, or better known, than
# others.
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from ccot.plotting import plot_blocks, plot_merge_costs
from ccot.recommend import BlockRecommender

rng = np.random.default_rng(0)
n_users, n_films = 500, 300
group, genre = rng.integers(4, size=n_users), rng.integers(5, size=n_films)
taste = np.array(
    [
        [1.2, 0.9, -0.8, -0.6, 0.1],
        [-0.8, 1.1, 0.9, -0.5, -0.6],
        [-0.6, -0.9, 1.0, 1.2, 0.0],
        [0.8, -0.6, -0.7, 0.7, 1.2],
    ]
)[group][:, genre]
temper, quality = rng.normal(0, 0.4, size=n_users), rng.normal(0, 0.4, size=n_films)
activity, fame = rng.lognormal(0, 0.6, size=n_users), rng.lognormal(0, 0.8, size=n_films)
seen = rng.random(taste.shape) < 0.07 * np.outer(activity, fame) * np.exp(0.7 * taste)
opinion = 3.4 + 0.7 * taste + temper[:, None] + quality + rng.normal(0, 0.7, size=taste.shape)
ratings = sp.csr_array(seen * opinion.round().clip(1, 5))
print(f"{ratings.nnz} ratings, {ratings.nnz / taste.size:.0%} of the matrix")

# %%
# A fifth of the ratings is left out for testing. Entries that the sparse matrix does not store
# are missing.
kept = rng.random(ratings.nnz) < 0.8
users, films = ratings.nonzero()
train = sp.csr_array((ratings.data[kept], (users[kept], films[kept])), shape=ratings.shape)
model = BlockRecommender(random_state=0).fit(train)
print(model.coclustering_.summary())
print(f"users, adjusted Rand index: {adjusted_rand_score(group, model.user_labels_):.2f}")
print(f"films, adjusted Rand index: {adjusted_rand_score(genre, model.item_labels_):.2f}")

# %%
# The errors of predictions for the ratings that were left out: by the mean of all ratings, by
# mean and offsets of user and film, and with the effect of the block in addition.
users, films, truth = users[~kept], films[~kept], ratings.data[~kept]
offsets = model.mean_ + model.user_offsets_[users] + model.item_offsets_[films]
for name, guess in (
    ("mean", np.full(len(truth), model.mean_)),
    ("offsets", offsets),
    ("offsets and blocks", model.predict(users, films)),
):
    error = np.sqrt(np.mean((guess.clip(1, 5) - truth) ** 2))
    print(f"{name:20} root mean squared error {error:.3f}")

# %%
# What to see next: films that the user's group liked and the user has not rated. An explanation
# says where a predicted rating comes from.
best = model.recommend(0, 5)
for found in best:
    print(f"film {found.item:3d}  predicted {found.rating:.1f}, liked by {found.liking:.0%}")
print(model.explain(0, best[0].item))

# %%
# A new user is assigned to a group by a few ratings. Nothing is fitted again.
favourites = np.flatnonzero(genre == 3)[:4]
visitor = model.new_user(items=favourites, ratings=[5, 4, 5, 4])
print(f"the visitor goes to cluster {visitor.label}")
print("recommended genres:", [int(genre[found.item]) for found in model.recommend(visitor, 8)])

# %%
# The blocks, averaged to few pixels so that they are visible despite missing entries, and the
# merge costs that show why these numbers of clusters were chosen.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot_blocks(model.coclustering_, train, before=True, ax=left, colorbar=False, max_pixels=60)
plot_blocks(model.coclustering_, train, ax=right, max_pixels=60)
plot_merge_costs(model.coclustering_)
plt.show()
