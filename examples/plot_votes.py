"""
Who votes with whom
===================

Sixteen votes of the US House of Representatives in 1984. Members are rows, votes are columns, and
some members did not vote: these entries are missing, and stay so.
"""

# %%
# Nobody says how many groups there are, or which member belongs to which party.
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
# Votes are ordered by which clusters of votes would be merged first. Blank is missing.
plot_blocks(model, house, names=True, row_colors={"party": party}, dendrograms=True, cmap="PuOr")

# %%
# How each group stands in the votes that set the groups apart.
plot_dots(model, house, n_columns=6)

# %%
# Members who sit with one party and vote with the other: how probable their group is, by the votes
# alone.
home = pd.Series(model.labels_).groupby(party).agg(lambda labels: labels.mode()[0])
crossing = np.flatnonzero(model.labels_ != home[party].to_numpy())
shares = model.predict_proba(house.iloc[crossing])
surest = np.argsort(-shares.max(axis=1), kind="stable")[:5]
for place in surest:
    member = house.index[crossing[place]]
    print(f"{member}: votes with the others, probability {shares[place].max():.3f}")

# %%
# Most members are beyond doubt. The falling edges are those in between.
plot_confidence(model)
# sphinx_gallery_thumbnail_number = 1
plt.show()
