"""Figures: cells and genes in blocks, and the genes of each cluster as dots."""

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from ccot.estimators.transport import TransportCoclustering
from ccot.io.binary import check_installed
from ccot.plotting import plot_blocks
from ccot.runtime.types import Matrix, is_sparse
from ccot.scverse.counts import clustered_counts
from ccot.sources.base import stack_rows

__all__ = ["blocks", "dotplot", "top_genes"]

# More cells than this cannot be distinguished in a figure.
_MOST_CELLS = 10_000


def blocks(adata: Any, key: str = "ccot", layer: str | None = None, **options: Any) -> Any:
    """Show cells and genes ordered by cluster.

    Parameters
    ----------
    adata, key : anndata.AnnData; str, default="ccot"
        After :func:`ccot.scverse.tl.cocluster` with this ``key_added``.
    layer : str, optional
        By default the clustered one. Counts are shown as logarithms, cells scaled to equal sums.
        At most 10,000 cells are shown.
    **options
        Of :func:`ccot.plotting.plot_blocks`: ``ax``, ``cmap``, ``colorbar``.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if f"{key}_genes" not in adata.var:
        raise ValueError(f"there are no clusters {key!r} of genes: call tl.cocluster first")
    step = -(-adata.n_obs // _MOST_CELLS)
    counts = clustered_counts(adata, key, layer)
    picked = [rows[-part.start % step :: step] for part, rows in counts.log_rows()]
    matrix = stack_rows([rows for rows in picked if rows.shape[0]], adata.n_vars)
    ax = plot_blocks(_model_of(adata, key, step), matrix, **options)
    ax.set(xlabel="gene cluster (size)", ylabel="cell cluster (size)")
    return ax


def dotplot(
    adata: Any,
    key: str = "ccot",
    n_genes: int = 4,
    layer: str | None = None,
    markers: str | None = None,
    **options: Any,
) -> Any:
    """Show the first genes of each cluster with ``scanpy.pl.dotplot``.

    Parameters
    ----------
    adata, key, n_genes, markers
        As in :func:`top_genes`.
    layer : str, optional
        By default the clustered one. Counts are shown as logarithms, with cells scaled to equal
        sums.
    **options
        Of ``scanpy.pl.dotplot``.

    Returns
    -------
    None, dict or scanpy.pl.DotPlot
        What ``scanpy.pl.dotplot`` returns.
    """
    check_installed("scanpy", "dot plots", "scverse")
    import anndata

    genes = top_genes(adata, key, n_genes, markers)
    wanted = pd.Index(np.unique(np.concatenate(list(genes.values()))))
    places = adata.var_names.get_indexer(wanted)
    counts = clustered_counts(adata, key, layer)
    picked: list[Matrix] = [rows[:, places] for _, rows in counts.log_rows()]
    values = stack_rows(picked, len(wanted))
    values = values.toarray() if is_sparse(values) else values
    shown = anndata.AnnData(values, obs=adata.obs[[key]].copy(), var=pd.DataFrame(index=wanted))
    return import_module("scanpy").pl.dotplot(shown, genes, groupby=key, **options)


def top_genes(
    adata: Any, key: str = "ccot", n_genes: int = 4, markers: str | None = None
) -> dict[str, list[str]]:
    """Return the first genes of each cluster, in the form that scanpy's plots use.

    Parameters
    ----------
    adata, key : anndata.AnnData; str, default="ccot"
        After :func:`ccot.scverse.tl.marker_genes`; key of the clusters of cells.
    n_genes : int, default=4
        Genes of each cluster.
    markers : str, optional
        Name of the markers in ``uns``; by default ``key + "_markers"``.

    Returns
    -------
    dict of lists
        Names of genes for each cluster: the ``var_names`` of ``scanpy.pl.dotplot``, ``matrixplot``
        or ``heatmap``. Genes that are rarer in the cluster than elsewhere are left out.
    """
    stored = adata.uns.get(markers or f"{key}_markers")
    if stored is None:
        raise ValueError(f"there are no markers of {key!r}: call tl.marker_genes first")
    names, effects = stored["names"], stored["logfoldchanges"]
    return {
        group: [str(name) for name in names[group][effects[group] > 0][:n_genes]]
        for group in names.dtype.names
        if np.any(effects[group] > 0)
    }


def _model_of(adata: Any, key: str, step: int) -> TransportCoclustering:
    """Return an estimator with the stored clusters, for the figures."""
    model = TransportCoclustering()
    sides = (("row", adata.obs.iloc[::step], key), ("column", adata.var, f"{key}_genes"))
    for side, table, name in sides:
        used = table[name].cat.remove_unused_categories().cat
        setattr(model, f"{side}_labels_", used.codes.to_numpy())
        setattr(model, f"n_{side}_clusters_", len(used.categories))
        setattr(model, f"{side}_confidence_", table[f"{name}_confidence"].to_numpy())
    return model
