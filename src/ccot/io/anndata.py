"""AnnData in, labels in ``.obs`` and ``.var`` out."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.io.matrix import InputError, NamedMatrix, named_matrix


def from_anndata(adata: Any, layer: str | None = None) -> NamedMatrix:
    """Return the matrix of annotated data with its names.

    Parameters
    ----------
    adata : anndata.AnnData, observations are rows, variables columns
    layer : str, optional, a layer instead of ``X``

    Returns
    -------
    NamedMatrix
    """
    named = ", ".join(filter(None, adata.layers)) or "none at all"  # anndata 0.13: None is X
    if layer is not None and layer not in adata.layers:
        raise InputError(f"there is no layer {layer!r}: {named}")
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise InputError(f"X is empty: name a layer ({named})")
    how = "AnnData" if layer is None else f"AnnData, layer {layer!r}"
    return named_matrix(values, adata.obs_names, adata.var_names, how)


def annotate(adata: Any, model: Any, key: str = "ccot", var_key: str | None = None) -> None:
    """Write a co-clustering into annotated data.

    Parameters
    ----------
    adata : anndata.AnnData
        The data that the model was fitted to, in the same order. ``obs`` and ``var`` get the
        columns ``key`` (cluster, categorical) and ``key_confidence``, ``uns[key]`` the block means.
    model : estimator, fitted
    key : str, default="ccot", name of what is added
    var_key : str, optional, another name for the columns of ``var``

    Examples
    --------
    >>> import anndata
    >>> from ccot import TransportCoclustering
    >>> from ccot.datasets import load_simulated
    >>> from ccot.io.anndata import annotate, from_anndata
    >>> adata = anndata.AnnData(load_simulated("D3", random_state=0).data)
    >>> model = TransportCoclustering(random_state=0).fit(from_anndata(adata).values)
    >>> annotate(adata, model)
    >>> adata.obs["ccot"].nunique(), adata.var["ccot"].nunique()
    (2, 4)
    """
    check_is_fitted(model)
    import pandas as pd

    for side, size in zip(("row", "column"), adata.shape, strict=True):
        if (n_labels := len(getattr(model, f"{side}_labels_"))) != size:
            remedy = "pass the data that the model was fitted to"
            raise ValueError(f"the model has {n_labels} {side}s, the data {size}: {remedy}")
    # First of all: a view becomes a copy when it is written to, and has other tables then.
    adata.uns[key] = {"method": type(model).__name__}
    if hasattr(model, "block_means_"):
        adata.uns[key]["block_means"] = model.block_means_
    for table, name, side in ((adata.obs, key, "row"), (adata.var, var_key or key, "column")):
        # As text "10" comes before "2": the categories keep the order of the numbers.
        clusters, codes = np.unique(getattr(model, f"{side}_labels_"), return_inverse=True)
        table[name] = pd.Categorical.from_codes(codes, [str(label) for label in clusters])
        confidence = getattr(model, f"{side}_confidence_", None)
        if confidence is not None:
            table[f"{name}_confidence"] = np.asarray(confidence)
