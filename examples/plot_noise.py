"""
Steps and blocks as noise grows
===============================

``CCOT`` reduces each row to one number and finds clusters as steps of the sorted numbers.
``TransportCoclustering`` compares whole rows with blocks. Without noise both find the blocks. With
noise only ``TransportCoclustering`` does.
"""

# %%
# The simulated set D1 has 3 x 3 blocks whose means differ by up to five units. The standard
# deviation of the noise grows from nearly 0 to 9.
import matplotlib.pyplot as plt

from ccot import CCOT, TransportCoclustering
from ccot.datasets import load_simulated
from ccot.metrics import coclustering_error
from ccot.plotting import plot_blocks, plot_merge_costs

sigmas = (0.03, 0.3, 3.0, 9.0)
errors = {"CCOT": [], "TransportCoclustering": []}
for sigma in sigmas:
    truth = load_simulated("D1", random_state=0, sigma=sigma)
    for model in (CCOT(random_state=0), TransportCoclustering(random_state=0)):
        model.fit(truth.data)
        error = coclustering_error(
            truth.row_labels, truth.column_labels, model.row_labels_, model.column_labels_
        )
        name = type(model).__name__
        errors[name].append(error)
        numbers = f"{model.n_row_clusters_} x {model.n_column_clusters_}"
        print(f"sigma {sigma:5g}  {name:22} {numbers} blocks, error {error:.3f}")

# %%
# The error is the share of cells of the matrix that are in the wrong block. Both estimators find
# the numbers of clusters.
figure, ax = plt.subplots(layout="constrained")
for name, seen in errors.items():
    ax.plot(sigmas, seen, "o-", label=name)
ax.set(xscale="log", xlabel="noise (standard deviation)", ylabel="co-clustering error")
ax.legend(frameon=False)

# %%
# At the last noise level the blocks are invisible in the matrix, and hardly visible in the
# ordered matrix.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot_blocks(model, truth.data, before=True, ax=left, colorbar=False)
plot_blocks(model, truth.data, ax=right)

# %%
# The merge costs show them: merges that would destroy the blocks cost many times as much as
# merges that only undo the over-segmentation.
plot_merge_costs(model)
plt.show()
