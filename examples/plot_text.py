"""
Documents and words
===================

No text comes with scikit-learn that would not have to be downloaded, except the descriptions of its
small data sets: too short to cluster. So the counts here are simulated, in the way topic models
describe text: every document mixes its own topic with common words, lengths differ, and a word that
occurs once is likely to occur again. Real text is less tidy; the benchmarks have some.
"""

# %%
# Four topics over 1500 words. Two of them share half of their vocabulary. All documents are about
# equally topical. Where some are much more so than others (try ``rng.beta(4, 4, ...)``), a topic
# falls into strong and faint clusters: to a model of blocks these are different profiles.
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score

from ccot import TransportCoclustering
from ccot.plotting import plot_blocks, plot_confidence, plot_merge_costs

rng = np.random.default_rng(0)
n_documents, n_words, n_topics = 600, 1500, 4
common = rng.pareto(2.0, size=n_words) + 0.05
own = np.tile(common, (n_topics, 1))
for topic, start in enumerate((0, 250, 500, 625)):
    own[topic, start : start + 250] *= 15
own /= own.sum(axis=1, keepdims=True)
common /= common.sum()

topic = rng.integers(n_topics, size=n_documents)
share = rng.beta(20, 20, size=n_documents)[:, None]
rates = share * own[topic] + (1 - share) * common
length = rng.lognormal(4.8, 0.5, size=n_documents)[:, None]
bursts = rng.gamma(0.5, 1 / 0.5, size=rates.shape)
counts = sp.csr_array(rng.poisson(length * rates * bursts))
print(f"{counts.shape[0]} documents, {counts.shape[1]} words, {counts.nnz} counts")

# %%
# Raw counts go in, and nobody says how many topics there are.
model = TransportCoclustering(random_state=0).fit(counts)
print(model.summary())
print(f"NMI with the topics: {normalized_mutual_info_score(topic, model.row_labels_):.2f}")

tfidf = TfidfTransformer().fit_transform(counts)
rival = KMeans(n_topics, n_init=10, random_state=0).fit_predict(tfidf)
print(f"K-means, told there are 4: {normalized_mutual_info_score(topic, rival):.2f}")

# %%
# The number of clusters is where the merge costs fall out of line with their usual decay.
plot_merge_costs(model)

# %%
# A picture of counts is mostly zeros; averaged to fewer pixels it shows the vocabularies.
plot_blocks(model, counts, max_pixels=120)

# %%
# Words that are common to all topics belong nowhere in particular, and say so.
plot_confidence(model)

# %%
# A document that was not there when the model was fitted is placed at once, and a coarser or finer
# answer of the same hierarchy is a cut away.
print("new documents go to", model.predict(counts[:5]))
coarse = model.cut(3, model.n_column_clusters_)
sizes = np.bincount(coarse.row_labels).tolist()
print(f"three clusters: sizes {sizes}, {coarse.share_kept:.0%} of the information kept")
plt.show()
