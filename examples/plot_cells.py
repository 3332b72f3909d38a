"""
Cells and genes
===============

Counts of single cells in an AnnData, co-clustered without normalisation, selection of genes or a
number of clusters. ``ccot.scverse`` is used like scanpy: ``tl`` computes and ``pl`` draws; results
are in ``obs``, ``var`` and ``uns``, where scanpy's figures find them. The counts are simulated, so
that the kinds of cells are known. anndata is needed, scanpy is not.
"""

# %%
# 900 cells of five kinds, 1,200 genes. Each kind has 60 marker genes, the first two kinds have 60
# more in common, and the other genes are noise. Cells differ in depth, genes in abundance; nine
# of ten entries are zero.
import anndata
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import ccot.scverse as cs

rng = np.random.default_rng(0)
kinds = rng.choice(5, size=900, p=(0.35, 0.25, 0.2, 0.15, 0.05))
fold = np.ones((5, 1200))
for kind in range(5):
    fold[kind, 60 * kind : 60 * (kind + 1)] = 6
fold[:2, 300:360] = 6
depth, abundance = rng.lognormal(0, 0.4, size=900), rng.lognormal(-3, 1, size=1200)
counts = sp.csr_matrix(rng.poisson(depth[:, None] * abundance * fold[kinds]))
adata = anndata.AnnData(counts.astype(np.float32))
adata.obs_names = [f"cell {i}" for i in range(900)]
adata.var_names = [f"gene {j}" for j in range(1200)]

# %%
# One call. It reports where it found counts: in ``layers["counts"]``, ``raw`` or ``X``.
known, new = adata[:800].copy(), adata[800:].copy()
model = cs.tl.cocluster(known, return_model=True)
print(known.uns["ccot"]["summary"])
print(f"adjusted Rand index: {adjusted_rand_score(kinds[:800], known.obs['ccot']):.2f}")
print(known)

# %%
# Cells and genes ordered by cluster.
figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
cs.pl.blocks(known, ax=ax, cmap="magma_r")

# %%
# Marker genes of each cluster of cells, in the form of ``sc.get.rank_genes_groups_df``, and by
# clusters of genes. ``uns["ccot_markers"]`` has the same for ``sc.pl.rank_genes_groups(adata,
# key="ccot_markers")``. If scanpy is installed, ``cs.pl.dotplot(adata)`` shows the first genes of
# each cluster.
markers = cs.tl.marker_genes(known)
print(markers.groupby("group", observed=True).head(2).round(2).to_string(index=False))
gene_clusters = known.uns["ccot_markers"]["gene_clusters"]
print(gene_clusters.groupby("group").head(1).round(2).to_string(index=False))

# %%
# New cells are assigned to the clusters. Genes are matched by name, in any order.
cs.tl.predict(model, new)
print(f"new cells: {adjusted_rand_score(kinds[800:], new.obs['ccot']):.2f}")
plt.show()
