"""AnnData in, labels in ``.obs`` and ``.var`` out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.io.binary import damage_explained
from ccot.io.matrix import InputError, NamedMatrix, check_unfolded, named_matrix


def from_anndata(adata: Any, layer: str | None = None) -> NamedMatrix:
    """Return the matrix of annotated data with its names.

    Parameters
    ----------
    adata : anndata.AnnData
        Annotated data: observations are rows, variables columns.
    layer : str, optional
        A layer instead of ``X``.

    Returns
    -------
    NamedMatrix
        The matrix.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from_anndata(anndata.AnnData(np.ones((3, 2)))).shape
    (3, 2)
    """
    if layer is not None and layer not in adata.layers:
        raise _no_layer(layer, adata.layers)
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise _no_values(adata.layers)
    return named_matrix(values, adata.obs_names, adata.var_names, _how(layer))


def annotate(adata: Any, model: Any, key: str = "ccot") -> None:
    """Write a co-clustering into annotated data.

    Parameters
    ----------
    adata : anndata.AnnData
        The data that the model was fitted to, in the same order. ``obs`` and ``var`` get the
        columns ``key`` (cluster, categorical) and ``key_confidence``, ``uns[key]`` the block means.
    model : estimator
        Fitted.
    key : str, default="ccot"
        Name of what is added.

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

    sides = (
        (adata.obs, model.row_labels_, getattr(model, "row_confidence_", None), "rows"),
        (adata.var, model.column_labels_, getattr(model, "column_confidence_", None), "columns"),
    )
    for table, labels, _, what in sides:
        if len(table) != len(labels):
            raise ValueError(
                f"the model has {len(labels)} {what}, the data {len(table)}: pass the data that "
                "the model was fitted to"
            )
    for table, labels, confidence, _ in sides:
        table[key] = pd.Categorical([str(label) for label in labels])
        if confidence is not None:
            table[f"{key}_confidence"] = np.asarray(confidence)
    adata.uns[key] = {"method": type(model).__name__}
    if hasattr(model, "block_means_"):
        adata.uns[key]["block_means"] = model.block_means_


def read_h5ad(path: Path, layer: str | None = None) -> NamedMatrix:
    """Read the matrix of an ``.h5ad`` file.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    layer : str, optional
        A layer instead of ``X``.

    Returns
    -------
    NamedMatrix
        The matrix.
    """
    try:
        import h5py
        from anndata.io import read_elem
    except ImportError as missing:
        raise ImportError(
            "h5ad files need anndata, which is not installed: pip install 'ccot[io]'"
        ) from missing
    # What is not asked for is not read: every part of a file is one more that may be damaged.
    with damage_explained(path, "h5ad"), h5py.File(path, "r") as file:
        layers = file.get("layers", {})
        if layer is not None and layer not in layers:
            raise _no_layer(layer, layers)
        if layer is None and "X" not in file:
            raise _no_values(layers)
        values = _part(file, "X" if layer is None else f"layers/{layer}", path)
        check_unfolded(8 * _height(values), path)
        names = [_part(file, _index(file, axis), path) for axis in ("obs", "var")]
        rows, columns = (getattr(found, "index", found) for found in map(read_elem, names))
        return named_matrix(read_elem(values), rows, columns, _how(layer))


def _index(file: Any, axis: str) -> str:
    """Return where the names of rows or columns are; old files keep them in the table itself."""
    index = file[axis].attrs.get("_index")
    return axis if index is None else f"{axis}/{index}"


def _height(values: Any) -> int:
    """Return the number of rows that a matrix announces."""
    shape = getattr(values, "shape", None) or values.attrs.get("shape", (0,))
    return int(shape[0])


def _part(file: Any, name: str, path: Path) -> Any:
    """Return a part of a file that is in it, and of a size that it can have."""
    import h5py

    place = file
    for step in name.split("/"):
        _check_link(place, step, path)
        place = place[step]
    sizes = 0
    for member in [place] if isinstance(place, h5py.Dataset) else _members(place, path):
        if member.is_virtual or member.external:
            raise _outside(member.name, path)
        sizes += member.size * member.dtype.itemsize
    check_unfolded(sizes, path)
    return place


def _members(group: Any, path: Path) -> list[Any]:
    """Return the arrays of a group; what is stored for a matrix or names has no deeper levels."""
    import h5py

    for name in group:
        _check_link(group, name, path)
    found = list(group.values())
    if not all(isinstance(member, h5py.Dataset) for member in found):
        raise InputError(f"{path} holds no matrix at {group.name}: pass a layer that is one")
    return found


def _check_link(group: Any, name: str, path: Path) -> None:
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise _outside(f"{group.name}/{name}", path)


def _outside(name: str, path: Path) -> InputError:
    return InputError(f"{path} refers for {name} to another place: copy the data into one file")


def _how(layer: str | None) -> str:
    return "AnnData" if layer is None else f"AnnData, layer {layer!r}"


def _no_layer(layer: str, layers: Any) -> InputError:
    return InputError(f"there is no layer {layer!r}: {', '.join(layers) or 'none at all'}")


def _no_values(layers: Any) -> InputError:
    return InputError(f"X is empty: name a layer, one of {', '.join(layers) or 'none'}")
