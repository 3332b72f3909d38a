"""
Samples and genes
=================

Expression intensities are positive, and their noise grows with their mean; samples differ in
brightness and genes in abundance. The first matrix is simulated with all of these properties,
because scikit-learn has no expression data. The second is a real table of measurements of wines.
"""

# %%
# Three kinds of tissue, 120 samples, 800 genes, of which 240 depend on the tissue.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from ccot import TransportCoclustering
from ccot.plotting import plot_block_means, plot_blocks, plot_confidence

rng = np.random.default_rng(0)
tissue = rng.choice(3, size=120, p=(0.5, 0.3, 0.2))
abundance = rng.lognormal(4, 1.2, size=800)
brightness = rng.lognormal(0, 0.3, size=120)
fold = np.ones((3, 800))
for kind in range(3):
    fold[kind, 80 * kind : 80 * (kind + 1)] = 2.5
mean = brightness[:, None] * abundance * fold[tissue]
intensities = mean * rng.gamma(2.0, 1 / 2.0, size=mean.shape)

model = TransportCoclustering(random_state=0).fit(intensities)
print(model.summary())
print(f"adjusted Rand index: {adjusted_rand_score(tissue, model.row_labels_):.2f}")

# %%
# The poisson family corrects for brightness and abundance, so the clusters have different
# profiles, not different brightness. For comparison: K-means on the logarithms, with the number
# of clusters given.
rival = KMeans(3, n_init=10, random_state=0).fit_predict(np.log(intensities))
print(f"K-means on logarithms, told there are 3: {adjusted_rand_score(tissue, rival):.2f}")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot_blocks(model, np.log(intensities), before=True, ax=left, colorbar=False)
plot_blocks(model, np.log(intensities), ax=right)

# %%
# Real measurements: 178 wines of three growers, with 13 columns in different units, so they are
# standardised. The number of clusters is found.
wine = load_wine()
model = TransportCoclustering(random_state=0).fit(scale(wine.data))
print(model.summary())
print(f"adjusted Rand index: {adjusted_rand_score(wine.target, model.row_labels_):.2f}")
for cluster in range(model.n_column_clusters_):
    members = np.flatnonzero(model.column_labels_ == cluster)
    print(f"column cluster {cluster}:", ", ".join(wine.feature_names[j] for j in members))

# %%
# What is high or low in each cluster of wines, and which wines are uncertain.
plot_block_means(model)
plot_confidence(model)
plt.show()
