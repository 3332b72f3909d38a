"""
Cells, marker genes and doubtful cells
======================================

A co-clustering of cells gives more than labels: the genes that mark each kind of cell, cells that
are between two kinds, and the clusters of cells from another run. The counts are simulated, so
that the kinds and the doublets (droplets with two cells) are known.
"""

# %%
# Six kinds of cells, each with 25 marker genes among 600; one droplet of twenty is a doublet.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from ccot import TransportCoclustering
from ccot.plotting import plot_blocks, plot_dots

rng = np.random.default_rng(0)
kinds = ["B", "T", "NK", "monocyte", "dendritic", "platelet"]
kind = rng.choice(6, size=700, p=(0.2, 0.35, 0.15, 0.15, 0.1, 0.05))
abundance = rng.lognormal(-2, 1, size=600)
rates = np.tile(abundance, (6, 1))
for k in range(6):
    rates[k, 25 * k : 25 * (k + 1)] *= 8
genes = [f"{kinds[j // 25]}-{j % 25 + 1}" if j < 150 else f"gene {j}" for j in range(600)]
other = rng.choice(6, size=700)
doublet = rng.random(700) < 0.05
mixed = np.where(doublet[:, None], (rates[kind] + rates[other]) / 2, rates[kind])
doublet &= other != kind
counts = rng.poisson(rng.lognormal(0, 0.3, size=700)[:, None] * mixed)
print(f"{(counts == 0).mean():.0%} of the counts are zero, {doublet.sum()} doublets")

# %%
# The kinds are found from the raw counts.
cells = pd.DataFrame(counts.astype(float), columns=genes)
model = TransportCoclustering(random_state=0).fit(cells)
print(f"{model.n_row_clusters_} clusters of cells, {model.n_column_clusters_} of genes")
print(f"adjusted Rand index: {adjusted_rand_score(kind, model.labels_):.2f}")

# %%
# Marker genes: the columns that distinguish each cluster of cells. The name of a gene says for
# which kind it was simulated.
plot_dots(model, cells, n_columns=4, names=False)

# %%
# The matrix, cells scaled to the same sum, with the true kinds beside it.
scaled = np.log1p(1e3 * cells.div(cells.sum(axis=1), axis=0))
known = {"kind": np.array(kinds)[kind], "doublet": np.where(doublet, "yes", "no")}
figure, ax = plt.subplots(figsize=(9, 7), layout="constrained")
plot_blocks(model, scaled, row_colors=known, dendrograms=True, cmap="magma_r", ax=ax)

# %%
# Doublets are mixtures of two kinds, so they have lower confidence than other cells.
shares = model.predict_proba(cells)
second = np.sort(np.log(np.maximum(shares, 1e-300)), axis=1)[:, -2]
print(
    f"doublets told from others by the second cluster: {roc_auc_score(doublet, second):.2f} (AUC)"
)
# sphinx_gallery_thumbnail_number = 1
plt.show()
