"""
Who votes with whom
===================

Sixteen votes of the US House of Representatives in 1984. Rows are members, columns are votes. Some
members did not vote: these entries are missing, and are not filled in.
"""

# %%
# The numbers of groups are found, and the parties are not used.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ccot import TransportCoclustering
from ccot.datasets import load_votes
from ccot.plotting import plot_blocks, plot_confidence, plot_dots

votes = load_votes()
house = pd.DataFrame(votes.data, index=votes.row_names, columns=votes.column_names)
party = np.array(votes.annotations["party"])
model = TransportCoclustering(random_state=0).fit(house)
print(model.summary())
print(pd.crosstab(party, model.labels_, rownames=["party"], colnames=["cluster"]))

# %%
# Clusters of votes that would be merged first are next to each other. Missing votes are blank.
plot_blocks(model, house, names=True, row_colors={"party": party}, dendrograms=True, cmap="PuOr")

# %%
# How each group voted where the groups differ most.
plot_dots(model, house, n_columns=6)

# %%
# Members of one party who vote with the other, and the probability of their group, from the votes
# alone.
home = pd.Series(model.labels_).groupby(party).agg(lambda labels: labels.mode()[0])
crossing = np.flatnonzero(model.labels_ != home[party].to_numpy())
shares = model.predict_proba(house.iloc[crossing])
surest = np.argsort(-shares.max(axis=1), kind="stable")[:5]
for place in surest:
    member = house.index[crossing[place]]
    print(f"{member}: votes with the others, probability {shares[place].max():.3f}")

# %%
# Most members have a confidence near 1. The lower values belong to members between the groups.
plot_confidence(model)
# sphinx_gallery_thumbnail_number = 1
plt.show()
