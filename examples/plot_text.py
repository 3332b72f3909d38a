"""
Documents and words
===================

Text that is on every reader's disk already: what scikit-learn says about itself. A document is the
docstring of an estimator or a function. The subpackage it comes from is not shown to the
co-clustering, only compared with what it finds. With another version of scikit-learn the text is
another one, and so may be the clusters.
"""

# %%
# Subpackages with at least 14 docstrings, words of four letters or more that occur in at least 5
# docstrings and in no more than half of them.
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils.discovery import all_estimators, all_functions

from ccot import TransportCoclustering
from ccot.plotting import plot_blocks, plot_confidence, plot_merge_costs

public = dict(sorted([*all_estimators(), *all_functions()], key=lambda item: item[0]))
home = {name: thing.__module__.split(".")[1] for name, thing in public.items()}
large = {package for package, size in Counter(home.values()).items() if size >= 14}
names = np.array([name for name in public if home[name] in large and public[name].__doc__])
package = np.array([home[name] for name in names])

vectorizer = CountVectorizer(
    stop_words="english", token_pattern="[a-z]{4,}", min_df=5, max_df=0.5, dtype=np.float64
)
counts = vectorizer.fit_transform([public[name].__doc__ for name in names])
words = vectorizer.get_feature_names_out()
print(f"{counts.shape[0]} documents, {counts.shape[1]} words, {counts.nnz} counts")

# %%
# Raw counts go in; long and short documents, rare and common words are corrected for. Nobody says
# how many clusters there are.
model = TransportCoclustering(random_state=0).fit(counts)
print(model.summary())

# %%
# What the clusters are about: the words with the largest share of their uses in the cluster, of
# those that it uses at least 20 times, and where its documents come from.
total = np.asarray(counts.sum(axis=0)).ravel()
for cluster in range(model.n_row_clusters_):
    members = model.row_labels_ == cluster
    uses = np.asarray(counts[members].sum(axis=0)).ravel()
    typical = np.argsort(np.where(uses < 20, 0, uses / total))[::-1][:7]
    homes = Counter(package[members].tolist()).most_common(3)
    print(f"{members.sum()} documents:", ", ".join(words[typical]))
    print("    from", ", ".join(f"{name} ({number})" for name, number in homes))

# %%
# The subpackages are not a truth to be found, but they can be compared with. K-means on weighted
# counts is told the number that was found here.
tfidf = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
rival = KMeans(model.n_row_clusters_, n_init=10, random_state=0).fit_predict(tfidf)
for name, labels in (("TransportCoclustering", model.row_labels_), ("K-means", rival)):
    print(f"{name}: NMI with the subpackages {normalized_mutual_info_score(package, labels):.2f}")

# %%
# The number of clusters is where the merge costs fall out of line with their usual decay. Real text
# has structure at several scales: the next best numbers above are worth a look.
plot_merge_costs(model)

# %%
# A picture of counts is mostly zeros; averaged to fewer pixels it shows the vocabularies.
plot_blocks(model, counts, max_pixels=120)

# %%
# Words that all documents share belong nowhere in particular, and say so.
plot_confidence(model)
doubtful = words[np.argsort(model.column_confidence_)[:8]]
print("words in doubt:", ", ".join(doubtful))

# %%
# A document that was not there when the model was fitted is placed at once, and a coarser or finer
# answer of the same hierarchy is a cut away.
texts = ["distances to the nearest neighbours in a metric space", "precision and recall of a curve"]
new = model.predict(vectorizer.transform(texts))
print(
    "new documents go to the clusters of", ", ".join(names[model.row_labels_ == k][0] for k in new)
)
coarse = model.cut(3, model.n_column_clusters_)
sizes = np.bincount(coarse.row_labels).tolist()
print(f"three clusters: sizes {sizes}, {coarse.share_kept:.0%} of the information kept")
# sphinx_gallery_thumbnail_number = 2
plt.show()
