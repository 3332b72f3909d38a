"""
A file that is read row by row
==============================

A matrix that does not fit in memory is fitted from its file: blocks are found on a sample of the
rows, then all rows are assigned part by part, in at most four passes. Memory depends on the
sample, not on the file. (The file of this example is small, so its sample is the whole matrix.)
"""

# %%
# A file to work with, written part by part: 4 x 3 blocks with noise.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from ccot import TransportCoclustering, estimate_resources
from ccot.plotting import plot_block_means, plot_blocks

rng = np.random.default_rng(0)
n_rows, n_columns = 12_000, 50
means = rng.normal(size=(4, 3))
rows, columns = rng.integers(4, size=n_rows), rng.integers(3, size=n_columns)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "matrix.npy")
file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, n_columns))
for part in np.array_split(np.arange(n_rows), 12):
    file[part] = means[rows[part]][:, columns] + rng.normal(size=(len(part), n_columns))
file.flush()
print(f"{path.stat().st_size / 1e6:.0f} MB on disk")

# %%
# The memory and time of the fit can be estimated first.
print(estimate_resources((n_rows, n_columns), out_of_core=True))

# %%
# The argument of ``fit`` is the path. Dask and Zarr arrays, Parquet files and functions that
# return rows work in the same way, and so does ``ccot fit matrix.npy --by-row``.
model = TransportCoclustering(random_state=0).fit(path)
print(model.summary())
print(f"rows, adjusted Rand index: {adjusted_rand_score(rows, model.labels_):.2f}")
print(f"columns, adjusted Rand index: {adjusted_rand_score(columns, model.column_labels_):.2f}")

# %%
# If there are more entries than pixels, each pixel shows the mean of its entries.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot_blocks(model, file, before=True, ax=left, colorbar=False, max_pixels=200)
plot_blocks(model, file, ax=right, max_pixels=200)

# %%
# Block means over all rows, and the probabilities of the clusters of each row, also read part by
# part.
plot_block_means(model)
shares = model.transform(path)
print(f"{(shares.max(axis=1) > 0.99).mean():.0%} of the rows are sure of their cluster")
folder.cleanup()
# sphinx_gallery_thumbnail_number = 1
plt.show()
