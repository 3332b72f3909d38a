"""
Samples and genes
=================

Expression intensities are positive, their noise grows with their mean, samples differ in brightness
and genes in abundance. The matrix here is simulated with all four properties, because no expression
data come with scikit-learn; a real table of measurements, of wines, follows.
"""

# %%
# Three kinds of tissue, 120 samples, 800 genes, of which 240 answer to the tissue.
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
# Brightness and abundance are taken out by the degrees of the poisson family: the clusters are of
# profiles, not of bright samples. K-means on the logarithms, told the number, for comparison.
rival = KMeans(3, n_init=10, random_state=0).fit_predict(np.log(intensities))
print(f"K-means on logarithms, told there are 3: {adjusted_rand_score(tissue, rival):.2f}")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot_blocks(model, np.log(intensities), before=True, ax=left, colorbar=False)
plot_blocks(model, np.log(intensities), ax=right)

# %%
# Real measurements: 178 wines of three growers, 13 columns in different units, so standardised.
# Their number is not told.
wine = load_wine()
model = TransportCoclustering(random_state=0).fit(scale(wine.data))
print(model.summary())
print(f"adjusted Rand index: {adjusted_rand_score(wine.target, model.row_labels_):.2f}")
for cluster in range(model.n_column_clusters_):
    members = np.flatnonzero(model.column_labels_ == cluster)
    print(f"column cluster {cluster}:", ", ".join(wine.feature_names[j] for j in members))

# %%
# What the clusters of wines have much or little of, and which wines are in doubt.
plot_block_means(model)
plot_confidence(model)
plt.show()
