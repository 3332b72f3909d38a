"""Tools: co-cluster cells and genes, find the genes of each cluster, place new cells."""

import colorsys
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ccot._version import __version__
from ccot.estimators.transport import TransportCoclustering
from ccot.io.anndata import annotate
from ccot.plotting import PALETTE
from ccot.runtime.run import as_generator
from ccot.scverse.counts import Counts, clustered_counts, find_counts
from ccot.scverse.markers import compare_groups
from ccot.sources import as_source

__all__ = ["cocluster", "marker_genes", "predict"]


def cocluster(
    adata: Any,
    layer: str | None = None,
    key_added: str = "ccot",
    copy: bool = False,
    *,
    random_state: Any = 0,
    rng: Any = None,
    return_model: bool = False,
    quiet: bool = False,
    **parameters: Any,
) -> Any:
    """Co-cluster cells and genes with :class:`ccot.TransportCoclustering`.

    Pass raw counts: you need not normalise them or select genes.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells x genes, in memory or backed; a backed matrix is read row by row.
    layer, key_added : str, optional; str, default="ccot"
        Name of a layer, or ``"X"`` or ``"raw"``. By default ``layers["counts"]``, or else the first
        of ``raw`` (the genes of ``adata``) and ``X`` that holds counts, or else the first without
        negative values, or else ``X``; a printed line says which. Name of the additions.
    copy, return_model : bool, default=False
        Return a copy with the additions instead; return the estimator, for :func:`predict`.
    random_state, rng : int, Generator, RandomState or None, default=0
        Seed of the starts, by either name.
    quiet : bool, default=False
        Do not print which counts are used.
    **parameters
        Of :class:`ccot.TransportCoclustering`; rows are cells, columns are genes.

    Returns
    -------
    None, anndata.AnnData or TransportCoclustering
        None, unless ``copy`` or ``return_model``. With a key "ccot", added are

        ``obs["ccot"]``, ``var["ccot_genes"]``
            Clusters, categorical; also columns with ``_confidence`` (0 to 1) and, if it was
            estimated, ``_reproducibility`` added to the names.
        ``uns["ccot"]``, ``uns["ccot_colors"]``, ``uns["ccot_genes_colors"]``
            About the model (family, numbers, block means, parameters, source of the counts), and
            the colours of the clusters.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from ccot.scverse import tl
    >>> means = np.kron([[4.0, 0.5], [0.5, 4.0], [1.0, 1.0]], np.ones((30, 30)))
    >>> adata = anndata.AnnData(np.random.default_rng(0).poisson(means).astype(np.float32))
    >>> tl.cocluster(adata, n_row_clusters=3)
    ccot: counts of X
    >>> adata.obs["ccot"].cat.categories.tolist(), adata.uns["ccot"]["family"]
    (['0', '1', '2'], 'poisson')
    """
    if copy and return_model:
        raise ValueError("copy=True and return_model=True exclude each other: pass one of them")
    seed = random_state if rng is None else as_generator(random_state or None, rng)
    model = TransportCoclustering(random_state=seed, **parameters)
    counts = find_counts(adata, layer).of_genes(adata.var_names)
    if not quiet:
        print(counts.describe())
    model.fit(counts.values)
    model.feature_names_in_ = np.asarray(counts.genes, dtype=object)
    written = adata.copy() if copy else adata
    _write(written, model, counts, key_added)
    return model if return_model else written if copy else None


def predict(
    model: Any,
    adata_new: Any,
    layer: str | None = None,
    key_added: str = "ccot",
    copy: bool = False,
    *,
    missing: str = "error",
    quiet: bool = False,
) -> Any:
    """Predict the clusters of new cells; genes are matched by name.

    Parameters
    ----------
    model : estimator
        Fitted to named genes: by :func:`cocluster` with ``return_model=True``, or to a data frame.
    adata_new : anndata.AnnData
        New cells. Genes that are not in the model are left out.
    layer, key_added, copy, quiet
        As in :func:`cocluster`; all genes of ``raw`` are used.
    missing : {"error", "zero"}, default="error"
        What to do about genes of the model that the new cells do not have.

    Returns
    -------
    None or anndata.AnnData
        The copy. Added are ``obs[key_added]``, with all clusters as categories, and their colours.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from ccot.scverse import tl
    >>> means = np.tile(np.kron([[4.0, 0.5], [0.5, 4.0]], np.ones(20)), (40, 1))
    >>> adata = anndata.AnnData(np.random.default_rng(0).poisson(means).astype(np.float32))
    >>> known, new = adata[:60].copy(), adata[60:, ::-1].copy()
    >>> model = tl.cocluster(known, return_model=True)
    ccot: counts of X
    >>> tl.predict(model, new)
    ccot: counts of X; 40 of 40 genes of the model found
    >>> new.obs["ccot"].iloc[:2].tolist() == known.obs["ccot"].iloc[:2].tolist()
    True
    """
    check_is_fitted(model)
    if missing not in ("error", "zero"):
        raise ValueError(f'missing={missing!r} must be "error" or "zero"')
    if not hasattr(model, "feature_names_in_"):
        raise ValueError(
            "the model has no names of genes: use the model of cocluster with "
            "return_model=True, or fit it to a data frame"
        )
    wanted = pd.Index(model.feature_names_in_)
    found = find_counts(adata_new, layer)
    counts = found.of_genes(wanted, fill=missing == "zero")
    if not quiet:
        n_found = int(wanted.isin(found.genes).sum())
        print(f"{found.describe()}; {n_found} of {len(wanted)} genes of the model found")
    # As a source, because a matrix without names would cause a warning.
    labels = model.predict(as_source(counts.values))
    written = adata_new.copy() if copy else adata_new
    clusters = [str(cluster) for cluster in range(model.n_row_clusters_)]
    written.uns[f"{key_added}_colors"] = _colours(len(clusters))
    written.obs[key_added] = pd.Categorical.from_codes(labels, clusters)
    return written if copy else None


def marker_genes(
    adata: Any,
    key: str = "ccot",
    layer: str | None = None,
    key_added: str | None = None,
    *,
    n_genes: int | None = None,
) -> pd.DataFrame:
    """Rank the genes that distinguish each cluster of cells from all other cells.

    Counts are scaled to a sum of 10,000 for each cell and replaced by log(1 + x), as in scanpy's
    tutorials. Values that are not counts are used unchanged. Scores are Welch's t.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells with their clusters.
    key : str, default="ccot"
        Categorical column of ``obs``: that of :func:`cocluster`, or any other.
    layer, key_added : str, optional
        As in :func:`cocluster`; by default the clustered one, and ``key + "_markers"``.
    n_genes : int, optional
        Genes to keep for each cluster; all by default.

    Returns
    -------
    pandas.DataFrame
        As ``scanpy.get.rank_genes_groups_df`` returns it: ``group``, ``names``, ``scores``,
        ``logfoldchanges`` (to base 2), ``pct_nz_group`` and ``pct_nz_reference`` (shares of cells
        with the gene inside and outside of the cluster), and ``gene_cluster``. ``uns[key_added]``
        has the same as ``scanpy.tl.rank_genes_groups`` stores it, for ``scanpy.pl``, and a table
        ``gene_clusters`` with the effect of each cluster of genes.

    Notes
    -----
    There are no p-values (``pvals`` is NaN in ``uns``): clusters found in the same counts differ by
    construction. Fold changes are computed from means of logarithms, as scanpy does; if few cells
    have a gene, they are larger than the ratio of its mean counts.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from ccot.scverse import tl
    >>> means = np.array([[4.0, 0.5], [0.5, 4.0]])[np.arange(60) % 2].repeat([1, 39], axis=1)
    >>> adata = anndata.AnnData(np.random.default_rng(0).poisson(means).astype(np.float32))
    >>> adata.obs["kind"] = np.array(["a", "b"])[np.arange(60) % 2]
    >>> tl.marker_genes(adata, "kind", n_genes=1)["names"].iloc[0]
    '0'
    """
    if key not in adata.obs:
        raise ValueError(f"there are no clusters {key!r} of cells: call tl.cocluster first")
    groups = adata.obs[key].astype("category").cat.remove_unused_categories()
    if len(groups.cat.categories) < 2:
        raise ValueError(
            f"obs[{key!r}] has one cluster: there is no other cluster to compare it with"
        )
    found = compare_groups(clustered_counts(adata, key, layer), groups)
    gene_clusters = adata.var.get(f"{key}_genes")
    stored = found.as_stored(key, n_genes)
    if gene_clusters is not None:
        stored["gene_clusters"] = found.by_gene_cluster(gene_clusters)
    adata.uns[key_added or f"{key}_markers"] = stored
    return found.as_frame(gene_clusters, n_genes)


def _write(adata: Any, model: Any, counts: Counts, key: str) -> None:
    genes = f"{key}_genes"
    annotate(adata, model, key, var_key=genes)
    found = getattr(model, "reproducibility_", None)
    for table, name, side in ((adata.obs, key, "row"), (adata.var, genes, "column")):
        # Values of an earlier fit do not belong to the clusters of this one.
        if (column := f"{name}_reproducibility") in table:
            del table[column]
        if (points := getattr(getattr(found, side, None), "points", None)) is not None:
            table[column] = np.asarray(points)
        adata.uns[f"{name}_colors"] = _colours(table[name].nunique())
    names = "family", "family_reason", "n_row_clusters", "n_column_clusters", "icl", "bic", "n_iter"
    # Values that every file format can store.
    adata.uns[key] |= {
        "version": __version__,
        "source": counts.where,
        "are_counts": counts.are_counts,
        "summary": model.summary(),
        "params": {k: v for k, v in model.get_params().items() if isinstance(v, str | int | float)},
        **{name: getattr(model, f"{name}_") for name in names},
    }


def _colours(number: int) -> np.ndarray:
    """Return the colours of clusters: those of the figures, then more that differ from them."""
    more = (
        colorsys.hls_to_rgb(0.618034 * index % 1, (0.4, 0.65, 0.25)[index % 3], 0.6)
        for index in range(number - len(PALETTE))
    )
    hexes = ("#{:02x}{:02x}{:02x}".format(*(round(255 * c) for c in rgb)) for rgb in more)
    return np.array([*PALETTE[:number], *hexes])
