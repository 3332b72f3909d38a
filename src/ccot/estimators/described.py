"""Descriptions of fitted clusters: in words, as a data frame, and in notebooks."""

from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import _is_fitted, check_is_fitted

from ccot.coclustering import Coclustering, Partition
from ccot.describe import MAX_NAMED_ROWS, Portrait, portray_sides, with_names
from ccot.io.frames import make_frame
from ccot.runtime.backends import is_device_csr
from ccot.runtime.types import is_sparse
from ccot.sources import RowSource

# More clusters than this are not described in a summary.
MANY = 12
_SURE = 0.9
# A dense matrix with at most so many entries is copied at the fit and described when asked for.
_COPIED = 2**20
# Values of a sparse matrix that tell whether it has been changed.
_SUMMED = 2**22
# Pictures of block means: size, a colour for none, little to much, below zero and above.
_WIDTH, _HEIGHT, _NONE = 260, 200, "#d8d8d4"
_PLAIN = ((247, 250, 251), (33, 94, 168))
_SIGNED = ((36, 86, 168), (248, 248, 246), (190, 82, 30))


class DescribedClusters:
    """Descriptions of the clusters of a fitted estimator."""

    n_row_clusters: int | None
    n_column_clusters: int | None
    row_labels_: np.ndarray
    column_labels_: np.ndarray
    _describe_given: Callable[[Any, Any], Any]  # of the base of estimators
    _coclustering: Coclustering
    _unit = 1.0  # what values were divided by
    _kept_portraits: tuple[tuple[Portrait, ...], tuple[Portrait, ...]]
    _to_describe: Any  # what was fitted and the sum of its values, until descriptions are asked for
    _waits_for_names = False  # where names come after the fit nothing is described before

    def summary(self) -> str:
        """Return a summary of the clusters and their confidence in a few lines."""
        check_is_fitted(self)
        row, column = self._partition("row"), self._partition("column")
        lines = [
            f"{type(self).__name__}: {count(len(row.labels), 'row')} in "
            f"{count(row.n_clusters, 'cluster')}, {count(column.sizes().sum(), 'column')} in "
            f"{count(column.n_clusters, 'cluster')}"
        ]
        if self._unit != 1.0:
            lines.append(f"  values divided by {self._unit:.3g} first: they are too far from 1")
        lines += self._describe("row", row, self.n_row_clusters)
        lines += self._describe("column", column, self.n_column_clusters)
        return "\n".join(lines)

    def _partition(self, side: str) -> Partition:
        return Partition(
            labels=getattr(self, f"{side}_labels_"), n_clusters=getattr(self, f"n_{side}_clusters_")
        )

    def _describe(self, name: str, side: Partition, asked: int | None) -> list[str]:
        """Return the lines of the summary about one side."""
        line = f"  {name} clusters: sizes {', '.join(map(str, side.sizes()))}"
        confidence = getattr(self, f"{name}_confidence_", None)
        if confidence is not None and side.n_clusters > 1:
            # A mean near 1 says little; who is in doubt says more.
            doubtful = (confidence[side.labels >= 0] < _SURE).sum()
            line += f"; confidence below {_SURE}: {doubtful or 'none'}"
        portraits = (self._made_portraits() or ((), ()))[0 if name == "row" else 1]
        # Columns without names are not listed.
        named = name == "row" or hasattr(self, "feature_names_in_")
        if not (named and 1 < len(portraits) <= MANY):
            return [line]
        texts = (one.sentence if name == "row" else one.listed for one in portraits)
        return [line, *(f"    {k}: {text}" for k, text in enumerate(texts))]

    @property
    def labels_(self) -> np.ndarray:
        """Cluster of each row: the same as ``row_labels_``, by scikit-learn's name."""
        check_is_fitted(self)
        return self.row_labels_

    def to_frame(self, side: str = "rows", *, names: Any = None, library: str = "pandas") -> Any:
        """Return names, clusters and confidence as a data frame.

        Parameters
        ----------
        side : {"rows", "columns"}, default="rows"
        names : sequence of str, optional
            Names of the rows or columns; by default those of the fitted frame, or else positions.
        library : {"pandas", "polars"}, default="pandas"

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            In the order of the fitted matrix: ``name``, ``cluster`` and, if any, ``confidence``.
        """
        check_is_fitted(self)
        if side not in ("rows", "columns"):
            raise ValueError(f'side={side!r} must be "rows" or "columns"')
        labels = self.row_labels_ if side == "rows" else self.column_labels_
        if names is None:
            fitted = "row_names_in_" if side == "rows" else "feature_names_in_"
            names = getattr(self, fitted, np.arange(len(labels)))
        if len(names) != len(labels):
            raise ValueError(f"{len(names)} names for {len(labels)} {side}")
        columns = {"name": names, "cluster": labels}
        if (confidence := getattr(self, f"{side[:-1]}_confidence_", None)) is not None:
            columns["confidence"] = confidence
        return make_frame(columns, library)

    def describe_clusters(self, X: Any = None, *, columns: Any = None) -> Any:
        """Return what distinguishes each cluster, in the units of the columns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns), optional
            The fitted matrix, or another matrix of the same rows and columns. By default the fitted
            one, which is not kept if it has many rows that were read row by row.
        columns : sequence of ccot.describe.Column, optional
            Kinds of the columns of ``X``; by default they are recognised from the values.

        Returns
        -------
        pandas.DataFrame, or list of dict where pandas is not installed
            One line for each cluster and column, the most distinctive first: ``side``, ``cluster``,
            ``name`` (suggested), ``size``, ``column``, ``direction`` ("high", "low", or "average"
            if nothing distinguishes the cluster), ``amount``, ``mean`` and ``overall`` (or dates),
            and ``share`` of members for which it holds. Column clusters are described by rows.
        """
        lines = [
            line
            for side, found in zip(("row", "column"), self._portraits(X, columns), strict=True)
            for k, portrait in enumerate(found)
            for line in _lines(side, k, portrait)
        ]
        try:
            return make_frame({key: [line[key] for line in lines] for key in lines[0]})
        except ImportError:
            return lines

    @property
    def cluster_names_(self) -> list[str]:
        """Suggested names of the row clusters, made of what distinguishes them."""
        return self._names(0)

    @property
    def column_cluster_names_(self) -> list[str]:
        """Suggested names of the column clusters, made of their most typical members."""
        return self._names(1)

    def _names(self, axis: int) -> list[str]:
        check_is_fitted(self)
        try:
            return [portrait.name for portrait in self._portraits()[axis]]
        except ValueError as error:
            # ``dir``, as notebooks call it, looks at every attribute, and expects no other error.
            raise AttributeError(str(error)) from error

    def _portraits(self, X: Any = None, columns: Any = None) -> Any:
        """Return what the row and the column clusters are."""
        check_is_fitted(self)
        if X is not None:
            found = self._describe_given(X, columns)
        elif (found := self._made_portraits()) is None:
            raise ValueError(
                "the fitted matrix was not kept, or it has changed since: pass it, as in "
                "describe_clusters(X)"
            )
        return with_names(found[0]), with_names(found[1])

    def _describe_matrix(self, matrix: Any, columns: Any = None, names: Any = None) -> Any:
        labels = self.row_labels_, self.column_labels_
        if matrix.shape != (shape := tuple(map(len, labels))):
            raise ValueError(f"X has shape {matrix.shape}, but the fitted matrix had {shape}")
        columns = self._column_titles() if columns is None else columns
        names = self._row_names() if names is None else names
        confidence = getattr(self, "column_confidence_", None)  # baselines have none
        return portray_sides(matrix, *labels, columns, names, confidence)

    def _column_titles(self) -> list[str]:
        numbered = [f"column {j}" for j in range(len(self.column_labels_))]
        return [*map(str, getattr(self, "feature_names_in_", numbered))]

    def _row_names(self) -> Any:
        names = getattr(self, "row_names_in_", None)
        return range(len(self.row_labels_)) if names is None else names

    def _keep_portraits(self, matrix: Any):
        """Keep what sets the clusters apart, unless many rows would have to be read again."""
        is_small = isinstance(matrix, np.ndarray) and matrix.size <= _COPIED
        is_kept = is_small or is_sparse(matrix) or is_device_csr(matrix) or self._waits_for_names
        # Sparse matrices are not copied: they are the caller's, who may change them.
        described = matrix.copy() if is_small else matrix
        if isinstance(matrix, RowSource) and matrix.shape[0] > MAX_NAMED_ROWS:
            return self
        self._to_describe = described, _sum_of(matrix)
        if not is_kept:
            self._made_portraits()
        return self

    def _made_portraits(self) -> Any:
        """Return what was kept of the fit, described now if it was not before; None if nothing."""
        matrix, total = self.__dict__.pop("_to_describe", (None, ""))
        if matrix is not None and _sum_of(matrix) == total:
            self._kept_portraits = self._describe_fitted(matrix)
        return getattr(self, "_kept_portraits", None)

    def _describe_fitted(self, matrix: Any) -> Any:
        if isinstance(matrix, RowSource):
            matrix = matrix.rows(np.arange(matrix.shape[0]))
        return self._describe_matrix(self._as_given(matrix))

    def _as_given(self, values: Any) -> Any:
        return values if self._unit == 1.0 else values * self._unit

    def __getstate__(self) -> Any:
        """Return what pickles and copies hold: descriptions rather than the matrix."""
        self._made_portraits()
        # The class beside this one in every estimator, scikit-learn's BaseEstimator, has it.
        return super().__getstate__()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show in notebooks what was found below the parameters."""
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle and _is_fitted(self):
            bundle["text/html"] += self._found_html()
        return bundle

    # A property in scikit-learn, which gives a method; notebooks call either.
    def _repr_html_(self) -> str:  # type: ignore[override]
        return self._repr_mimebundle_().get("text/html", escape(repr(self)))

    def _found_html(self) -> str:
        """Return summary, block means and a small picture of them."""
        text = f"<pre>{escape(self.summary())}</pre>"
        means = getattr(self, "block_means_", None)
        if means is None or max(means.shape) > 2 * MANY:
            return text
        kept = self._portraits() if self._made_portraits() else None
        rows, columns = (
            (side.sizes(), [one.name for one in kept[axis]] if kept else [""] * side.n_clusters)
            for axis, side in enumerate(map(self._partition, ("row", "column")))
        )
        return text + _show_blocks(means, rows, columns)

    def show(self, X: Any = None, *, height: int = 900, **options: Any) -> Any:
        """Return the whole report for a notebook: interactive, in an iframe, without a server.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns), optional
            The fitted matrix, to be shown.
        height : int, default=900
            Height of the iframe, in pixels.
        **options
            Passed to :func:`ccot.report.write_report`.

        Returns
        -------
        object that a notebook shows
        """
        check_is_fitted(self)
        # The report is made of estimators, so it cannot be known from here at import time.
        return import_module("ccot.report").show_report(self, X, height=height, **options)


def _sum_of(matrix: Any) -> str:
    """Return what tells whether a sparse matrix has been changed; nothing for others."""
    if not (is_sparse(matrix) or is_device_csr(matrix)):
        return ""
    values = matrix.data if is_sparse(matrix) else matrix.values()
    # Of very many values some, taken evenly: it is not to take as long as a part of the fit.
    return str(float(values[:: len(values) // _SUMMED + 1].sum()))


def _lines(side: str, cluster: int, portrait: Portrait) -> list[dict[str, Any]]:
    """Return one line for every column that sets a cluster apart, or one that there is none."""
    head = {"side": side, "cluster": cluster, "name": portrait.name, "size": portrait.size}
    lines = [
        (t.title, "high" if t.effect > 0 else "low", t.amount, *t.means, t.share)
        for t in portrait.traits
    ]
    none = "", "average", "", np.nan, np.nan, np.nan
    keys = "column", "direction", "amount", "mean", "overall", "share"
    return [head | dict(zip(keys, line, strict=True)) for line in lines or [none]]


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where needed."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_Called = tuple[np.ndarray, Sequence[str]]  # sizes of clusters, and their names


def _show_blocks(means: np.ndarray, rows: _Called, columns: _Called) -> str:
    """Return HTML: a picture of the blocks in their sizes beside a table of their means."""
    picture = picture_of_blocks(means, rows[0], columns[0])
    heads = "".join(
        f'<th title="{escape(name)}">C{k} ({size})</th>'
        for k, (name, size) in enumerate(zip(columns[1], columns[0], strict=True))
    )
    lines = "".join(
        f'<tr><th style="text-align:left">R{k} ({rows[0][k]}) {escape(rows[1][k])}</th>'
        + "".join(f"<td>{mean:.3g}</td>" for mean in row)
        + "</tr>"
        for k, row in enumerate(means)
    )
    return (
        '<div style="display:flex;gap:1.5em;align-items:flex-start;flex-wrap:wrap">'
        f"{picture}<table><thead><tr><th></th>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def picture_of_blocks(means: np.ndarray, row_sizes: np.ndarray, column_sizes: np.ndarray) -> str:
    """Return SVG: blocks as large as they are, in the colours of their means."""
    down, across = (
        np.cumsum([0, *sizes]) / max(sizes.sum(), 1) * length
        for sizes, length in ((row_sizes, _HEIGHT), (column_sizes, _WIDTH))
    )
    blocks = "".join(
        f'<rect x="{across[j]:.1f}" y="{down[i]:.1f}" width="{across[j + 1] - across[j]:.1f}" '
        f'height="{down[i + 1] - down[i]:.1f}" fill="{colour}" stroke="#fff"/>'
        for i, row in enumerate(_colours(means))
        for j, colour in enumerate(row)
    )
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    stretched = f'{size} preserveAspectRatio="none"'
    return f'<svg {stretched} role="img" aria-label="Block means">{blocks}</svg>'


def _colours(means: np.ndarray) -> list[list[str]]:
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    stops = _PLAIN
    if low < 0 < high:
        high = max(-low, high)
        low, stops = -high, _SIGNED
    places = np.linspace(0, 1, len(stops))
    position = (means - low) / ((high - low) or 1)
    mixed = np.stack([np.interp(position, places, part) for part in zip(*stops, strict=True)], -1)
    return [[_hex(colour) for colour in row] for row in mixed]


def _hex(colour: np.ndarray) -> str:
    return _NONE if np.isnan(colour).any() else "#" + bytes(colour.round().astype(np.uint8)).hex()
