"""
Words that go together
======================

Which words occur in which texts is a matrix of zeros and ones. Here the texts are the signatures
of scikit-learn's estimators, and the words are the names of their parameters: trees have a depth,
neighbours a metric, linear models an intercept. The result depends on the version of scikit-learn.
"""

# %%
# Names of parameters that at least four estimators have, and estimators with at least three.
from inspect import signature

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.utils.discovery import all_estimators

from ccot import TransportCoclustering
from ccot.plotting import plot_blocks, plot_dots, plot_reproducibility

home = {name: kind.__module__.split(".")[1] for name, kind in all_estimators()}
words = {name: set(signature(kind).parameters) for name, kind in all_estimators()}
count = pd.Series([word for said in words.values() for word in said]).value_counts()
vocabulary = sorted(count[count >= 4].index)
texts = pd.DataFrame({word: [word in said for said in words.values()] for word in vocabulary})
texts = texts.set_axis(list(words)).astype(float)
texts = texts[texts.sum(axis=1) >= 3]
print(
    f"{texts.shape[0]} estimators, {texts.shape[1]} parameters, {texts.to_numpy().mean():.0%} ones"
)

# %%
# Each cluster gets a name from the words that distinguish it.
model = TransportCoclustering(family="bernoulli", random_state=0).fit(texts)
for cluster, name in enumerate(model.cluster_names_):
    members = texts.index[model.labels_ == cluster]
    print(f"{name} ({len(members)}): {', '.join(members[:5])}, ...")

# %%
# The words of each cluster, and how often the other clusters have them.
plot_dots(model, texts, n_columns=4)

# %%
# The matrix, with the subpackages beside it, which were not used in the fit.
packages = {"subpackage": [home[name] for name in texts.index]}
plot_blocks(model, texts, names=True, row_colors=packages, dendrograms=True, cmap="Greys")

# %%
# Words that belong together are clustered together by random halves of the estimators. A cluster
# that is not reproducible contains the other words.
plot_reproducibility(model)

# %%
# A new signature is assigned to a cluster.
new = texts.iloc[:1] * 0
new[["max_depth", "max_features", "max_leaf_nodes", "min_samples_leaf", "random_state"]] = 1.0
shares = model.predict_proba(new)[0]
for cluster in np.argsort(-shares)[:2]:
    print(f"{shares[cluster]:.0%} {model.cluster_names_[cluster]}")
# sphinx_gallery_thumbnail_number = 2
plt.show()
