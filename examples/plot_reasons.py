"""
Recommendations with reasons
============================

Groups of readers and of books: what a group likes, what a reader should read next and why, and
recommendations for a new reader after three ratings. The ratings are simulated, with titles that
say what kind of book it is. ``ccot recommend`` does the same from a file.
"""

# %%
# Three groups of readers, four kinds of books. A reader rates few books, mostly liked ones.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp

from ccot.plotting import plot_block_means, plot_blocks
from ccot.recommend import BlockRecommender

rng = np.random.default_rng(0)
kinds = np.array(["crime", "history", "poetry", "science"])
group, kind = rng.integers(3, size=300), np.sort(rng.integers(4, size=160))
titles = [f"{kinds[k]} {j + 1}" for j, k in enumerate(kind)]
taste = np.array([[1.0, 0.4, -0.8, -0.4], [-0.6, 0.2, 1.1, 0.3], [-0.2, -0.7, -0.5, 1.2]])
liked = taste[group][:, kind]
seen = rng.random(liked.shape) < 0.12 * np.exp(0.8 * liked)
opinion = 3.3 + 0.9 * liked + rng.normal(0, 0.6, size=liked.shape)
ratings = sp.csr_array(seen * opinion.round().clip(1, 5))
print(f"{ratings.nnz} ratings, {ratings.nnz / liked.size:.0%} of the matrix")

# %%
# Groups of readers and of books. The numbers of groups are found.
model = BlockRecommender(random_state=0).fit(ratings)
found = model.coclustering_
print(f"{found.n_row_clusters_} groups of readers, {found.n_column_clusters_} of books")
print(pd.crosstab(kinds[kind], model.item_labels_, rownames=["kind"], colnames=["group"]))

# %%
# Who has rated what, with the kinds of books above it.
figure, ax = plt.subplots(figsize=(8.5, 6), layout="constrained")
above = {"kind": kinds[kind]}
plot_blocks(found, ratings, ax=ax, column_colors=above, dendrograms=True, max_pixels=100)

# %%
# What the groups think of the books that they have rated.
plot_block_means(found)
print(pd.DataFrame(model.block_means_).round(1).to_string())

# %%
# The recommendations for one reader, and the reasons for the first.
for best in model.recommend(0, 4):
    print(f"{titles[best.item]:12} predicted {best.rating:.1f}, liked by {best.liking:.0%}")
print(model.explain(0, model.recommend(0, 1)[0].item))

# %%
# A new reader, who liked three books of poetry.
poems = np.flatnonzero(kind == 2)[:3]
visitor = model.new_user(items=poems, ratings=[5, 5, 4])
print("new reader:", ", ".join(titles[best.item] for best in model.recommend(visitor, 5)))
# sphinx_gallery_thumbnail_number = 1
plt.show()
