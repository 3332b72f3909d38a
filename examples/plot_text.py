"""
Documents and words
===================

The text of scikit-learn's documentation: a document is the docstring of an estimator or a
function. Its subpackage is not used by the co-clustering, but compared with the clusters. The
result depends on the version of scikit-learn.
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
# The input are raw counts. The poisson family corrects for long and short documents, and for rare
# and common words. The numbers of clusters are found.
model = TransportCoclustering(random_state=0).fit(counts)
print(model.summary())

# %%
# What the clusters are about: words that occur at least 20 times in the cluster and mostly there,
# and the subpackages of its documents.
total = np.asarray(counts.sum(axis=0)).ravel()
for cluster in range(model.n_row_clusters_):
    members = model.row_labels_ == cluster
    uses = np.asarray(counts[members].sum(axis=0)).ravel()
    typical = np.argsort(np.where(uses < 20, 0, uses / total))[::-1][:7]
    homes = Counter(package[members].tolist()).most_common(3)
    print(f"{members.sum()} documents:", ", ".join(words[typical]))
    print("    from", ", ".join(f"{name} ({number})" for name, number in homes))

# %%
# The clusters compared with the subpackages, which are not the only sensible grouping. K-means on
# weighted counts is given the number of clusters that was found here.
tfidf = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
rival = KMeans(model.n_row_clusters_, n_init=10, random_state=0).fit_predict(tfidf)
for name, labels in (("TransportCoclustering", model.row_labels_), ("K-means", rival)):
    print(f"{name}: NMI with the subpackages {normalized_mutual_info_score(package, labels):.2f}")

# %%
# At the chosen number of clusters, the merge costs jump above their usual decay. Real text has
# structure at several scales, so also look at the next best numbers above.
plot_merge_costs(model)

# %%
# Most counts are zero. Averaged to fewer pixels, the picture shows the vocabularies.
plot_blocks(model, counts, max_pixels=120)

# %%
# Words that occur in all kinds of documents have low confidence.
plot_confidence(model)
doubtful = words[np.argsort(model.column_confidence_)[:8]]
print("words in doubt:", ", ".join(doubtful))

# %%
# A new document is assigned to a cluster without fitting again. ``cut`` gives fewer or more
# clusters from the same hierarchy.
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
