"""
A table of words and numbers
============================

A table with measurements in different units, words and missing values: penguins of the Palmer
Archipelago. Their species is not used in the fit, but compared with the clusters.
"""

# %%
# The data frame is used as it is. The kind of every column is recognised, and its preparation is
# printed.
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from ccot import TransportCoclustering
from ccot.datasets import load_penguins
from ccot.plotting import plot_blocks, plot_dots

penguins = load_penguins()
table = pd.DataFrame(penguins.data, columns=penguins.column_names, index=penguins.row_names)
table["island"], table["sex"] = penguins.annotations["island"], penguins.annotations["sex"]
species = penguins.annotations["species"]

model = TransportCoclustering(random_state=0).fit(table)
print(model.summary())
for column in model.preparation_.columns:
    print("   ", column.describe())

# %%
# Clusters have names made of what distinguishes them, with the share of members for which the
# name holds.
told = model.describe_clusters()
told = told[(told.side == "row") & (told.groupby(["side", "cluster"]).cumcount() < 3)]
print(told[["cluster", "name", "column", "amount", "share"]].round(2).to_string(index=False))

# %%
# The species, which the fit did not use, are beside the rows. The colours are standard deviations
# from the mean of the column, because columns have different units.
plot_blocks(model, table, names=True, row_colors={"species": species}, cmap="RdBu_r")

# %%
# The clusters correspond to species and sex together.
kinds = pd.Series(species, name="species") + ", " + table["sex"].fillna("sex unknown").to_numpy()
print(pd.crosstab(kinds, model.labels_, rownames=["kind"], colnames=["cluster"]))
print(f"adjusted Rand index with both: {adjusted_rand_score(kinds, model.labels_):.2f}")

# %%
# What distinguishes each cluster, compared with the others.
plot_dots(model, table)
# sphinx_gallery_thumbnail_number = 1
plt.show()
