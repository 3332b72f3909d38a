"""
A table of words and numbers
============================

Tables as people have them: measurements in different units, words, gaps. Penguins of the Palmer
Archipelago, with the species kept back to compare with.
"""

# %%
# A data frame goes in as it is: every column is read by its kind, and what is done to it is told.
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
# Clusters have names, made of what sets them apart, and each name can be checked: the share is that
# of the members for which it holds.
told = model.describe_clusters()
told = told[(told.side == "row") & (told.groupby(["side", "cluster"]).cumcount() < 3)]
print(told[["cluster", "name", "column", "amount", "share"]].round(2).to_string(index=False))

# %%
# Species were not shown to the fit; they stand beside the rows. The colours of the cells are
# standard deviations, since the columns have different units.
plot_blocks(model, table, names=True, row_colors={"species": species}, cmap="RdBu_r")

# %%
# Species and sex together are what the clusters follow.
kinds = pd.Series(species, name="species") + ", " + table["sex"].fillna("sex unknown").to_numpy()
print(pd.crosstab(kinds, model.labels_, rownames=["kind"], colnames=["cluster"]))
print(f"adjusted Rand index with both: {adjusted_rand_score(kinds, model.labels_):.2f}")

# %%
# What sets each cluster apart, and how the others stand in it.
plot_dots(model, table)
# sphinx_gallery_thumbnail_number = 1
plt.show()
