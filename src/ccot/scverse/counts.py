"""Counts in AnnData: where they are, and how they are read."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import gen_batches

from ccot.io.anndata import from_anndata
from ccot.io.matrix import InputError, named_matrix
from ccot.runtime.types import Matrix, is_sparse
from ccot.sources import FunctionSource, RowSource, as_source, is_source

# Counts of a cell are scaled to this sum before logarithms are taken.
CELL_SUM = 1e4
# Number of first values by which a matrix is judged.
_JUDGED = 2**20
_BATCH_ROWS = 4096


@dataclass(frozen=True)
class Counts:
    """The matrix of annotated data that is clustered: an array, or the rows of a file."""

    values: Any
    genes: pd.Index
    where: str  # "X", "raw" or "layers/NAME"
    are_counts: bool  # whole and not negative

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells and genes."""
        return self.values.shape

    def describe(self) -> str:
        """Return in one line what is clustered."""
        if self.are_counts:
            return f"ccot: counts of {self.where}"
        return f"ccot: values of {self.where} unchanged (they are not counts)"

    def of_genes(self, wanted: pd.Index, *, fill: bool = False) -> "Counts":
        """Return the columns of genes by name; missing ones are zero if ``fill``, else an error."""
        if wanted.equals(self.genes):
            return self
        places = self.genes.get_indexer(wanted)
        missing = wanted[places < 0]
        if len(missing) and not fill:
            raise InputError(
                f"{len(missing)} of {len(wanted)} genes are not in {self.where} (the first: "
                f'{missing[0]!r}): pass missing="zero" to count them as zero'
            )
        if len(missing) == len(wanted):
            raise InputError(f"none of the {len(wanted)} genes is in {self.where}: check the names")
        return Counts(_columns(self.values, places), wanted, self.where, self.are_counts)

    def log_rows(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield ranges of cells with logarithms of their counts; other values are unchanged."""
        in_file = isinstance(self.values, RowSource)
        parts = self.values.parts if in_file else gen_batches(self.shape[0], _BATCH_ROWS)
        for part in parts:
            rows = self.values.read(part) if in_file else self.values[part]
            yield part, _log(rows) if self.are_counts else rows


def find_counts(adata: Any, layer: str | None = None) -> Counts:
    """Return the counts of annotated data; a layer may also be called ``"X"`` or ``"raw"``."""
    for names, what in ((adata.obs_names, "obs"), (adata.var_names, "var")):
        if not names.is_unique:
            raise InputError(
                f"some names in {what} occur twice: call adata.{what}_names_make_unique()"
            )
    where = _name(adata, layer)
    values = _values(adata, where)
    genes = adata.raw.var_names if where == "raw" else adata.var_names
    if is_source(values):
        matrix = as_source(values)
    elif where == "raw":
        matrix = named_matrix(values, None, None, "AnnData, raw").values
    else:
        matrix = from_anndata(adata, None if where == "X" else where.removeprefix("layers/")).values
    return Counts(matrix, genes, where, _are_counts(_some(values)))


def clustered_counts(adata: Any, key: str, layer: str | None) -> Counts:
    """Return the counts that clusters were found in, for the genes of ``adata``."""
    source = adata.uns.get(key, {}).get("source")
    if layer is None and source is not None:
        layer = str(source).removeprefix("layers/")
    return find_counts(adata, layer).of_genes(adata.var_names)


def _name(adata: Any, layer: str | None) -> str:
    """Return where counts are: the given place, else one with counts, else without negatives."""
    if layer is not None:
        return layer if layer in ("X", "raw") and layer not in adata.layers else f"layers/{layer}"
    if "counts" in adata.layers:
        return "layers/counts"
    given = [name for name in ("raw", "X") if getattr(adata, name, None) is not None]
    judged = {name: _some(_values(adata, name)) for name in given}
    counts = [name for name in given if _are_counts(judged[name])]
    positive = [name for name in given if judged[name].min(initial=0) >= 0]
    return [*counts, *positive, "X"][0]


def _values(adata: Any, where: str) -> Any:
    if where == "raw":
        if adata.raw is None:
            raise InputError("adata has no raw: name a layer, or pass layer=None")
        return adata.raw.X
    # If there is no such layer, from_anndata says so.
    return adata.X if where == "X" else adata.layers.get(where.removeprefix("layers/"))


def _some(values: Any) -> np.ndarray:
    """Return values to judge a matrix by."""
    if values is None:
        return np.empty(0)
    if is_source(values):
        source = as_source(values, allow_nan=True)
        values = source.read(source.parts[0])
    if is_sparse(values):
        return values.data[:_JUDGED]
    return np.asarray(values[: max(1, _JUDGED // values.shape[1])])


def _are_counts(values: np.ndarray) -> bool:
    return bool(np.all((values >= 0) & (values == np.floor(values))))


def _log(rows: Matrix) -> Matrix:
    """Return log(1 + counts), each cell scaled to the same sum."""
    sums = np.asarray(rows.sum(axis=1)).ravel()
    scale = CELL_SUM / np.where(sums > 0, sums, 1)
    if is_sparse(rows):
        scaled = rows.multiply(scale[:, None]).tocsr()
        scaled.data = np.log1p(scaled.data)
        return scaled
    return np.log1p(rows * scale[:, None])


def _columns(values: Any, places: np.ndarray) -> Any:
    """Return columns at places, zeros where a place is -1."""
    if not isinstance(values, RowSource):
        return _picked(values, places)
    shape, step = (values.shape[0], len(places)), values.parts[0].stop
    return FunctionSource(lambda a, b: _picked(values.read(slice(a, b)), places), shape, step)


def _picked(rows: Matrix, places: np.ndarray) -> Matrix:
    absent = places < 0
    if not is_sparse(rows):
        return np.where(absent, 0, rows[:, places])
    picked = rows[:, places].tocsr()
    picked.data[absent[picked.indices]] = 0
    picked.eliminate_zeros()
    return picked
