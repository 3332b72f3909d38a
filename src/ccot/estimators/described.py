"""What estimators say about their clusters: in words, as a frame, and in notebooks."""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import _is_fitted, check_is_fitted

from ccot.describe import MAX_NAMED_ROWS, Portrait, portray_sides, with_names
from ccot.estimators.notebook import show_blocks
from ccot.io.frames import make_frame, row_names
from ccot.runtime.types import is_sparse
from ccot.sources import RowSource

if TYPE_CHECKING:
    from ccot.coclustering import Coclustering

# More clusters than this are not described in a summary.
MANY = 12


class DescribedClusters:
    """Descriptions of the clusters of a fitted estimator."""

    row_labels_: np.ndarray
    column_labels_: np.ndarray
    column_confidence_: np.ndarray
    _coclustering: Coclustering
    _kept_portraits: tuple[tuple[Portrait, ...], tuple[Portrait, ...]]

    def summary(self) -> str:
        """Return in a few lines what was found."""
        raise NotImplementedError

    def describe_clusters(self, X: Any = None, *, columns: Any = None) -> Any:
        """Return what sets each cluster apart, signed and in units that people read.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns), optional
            The fitted matrix, or another view of the same rows and columns. By default what was
            kept of the fit; a matrix of many rows that was read row by row leaves nothing.
        columns : sequence of ccot.describe.Column, optional
            What the columns of ``X`` are; by default kinds are read off the values.

        Returns
        -------
        pandas.DataFrame, or list of dict where pandas is not installed
            One line a cluster and column, the most telling first: ``side``, ``cluster``, ``name``
            (suggested), ``size``, ``column``, ``direction`` ("high", "low", or "average" for a
            cluster that is like everything else), ``amount``, ``mean``, ``overall``, ``share`` of
            the members for which it holds. Clusters of columns are told by rows.
        """
        check_is_fitted(self)
        rows, others = self._portraits(X, columns)
        lines = [
            line
            for side, found in (("row", rows), ("column", others))
            for k, portrait in enumerate(found)
            for line in _lines(side, k, portrait)
        ]
        try:
            return make_frame({key: [line[key] for line in lines] for key in lines[0]})
        except ImportError:
            return lines

    @property
    def cluster_names_(self) -> list[str]:
        """Suggested names of the row clusters, made of what sets them apart."""
        check_is_fitted(self)
        return [portrait.name for portrait in self._portraits()[0]]

    @property
    def column_cluster_names_(self) -> list[str]:
        """Suggested names of the column clusters, made of their most typical members."""
        check_is_fitted(self)
        return [portrait.name for portrait in self._portraits()[1]]

    def _portraits(self, X: Any = None, columns: Any = None) -> Any:
        """Return what the row and the column clusters are."""
        if X is not None:
            matrix = X if is_sparse(X) else np.asarray(X)
            found = self._describe_matrix(matrix, columns, row_names(X))
        elif hasattr(self, "_kept_portraits"):
            found = self._kept_portraits
        else:
            raise ValueError(
                "nothing was kept that describes the clusters of this fit: pass the matrix, "
                "describe_clusters(X)"
            )
        return with_names(found[0]), with_names(found[1])

    def _describe_matrix(self, matrix: Any, columns: Any = None, names: Any = None) -> Any:
        shape = len(self.row_labels_), len(self.column_labels_)
        if matrix.shape != shape:
            raise ValueError(f"X has shape {matrix.shape}, but the fitted matrix had {shape}")
        if columns is None:
            titles = getattr(self, "feature_names_in_", None)
            numbered = (f"column {j}" for j in range(shape[1]))
            columns = [*map(str, numbered if titles is None else titles)]
        if names is None:
            names = self._row_names()
        return portray_sides(
            matrix, self.row_labels_, self.column_labels_, columns, names, self.column_confidence_
        )

    def _row_names(self) -> Any:
        names = getattr(self, "row_names_in_", None)
        return range(len(self.row_labels_)) if names is None else names

    def _keep_portraits(self, matrix: Any, columns: Any = None):
        """Keep what sets the clusters apart, unless many rows would have to be read again."""
        if isinstance(matrix, RowSource):
            if matrix.shape[0] > MAX_NAMED_ROWS:
                return self
            matrix = matrix.rows(np.arange(matrix.shape[0]))
        self._kept_portraits = self._describe_matrix(matrix, columns)
        return self

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show in notebooks what was found below the parameters."""
        # The class beside this one in every estimator, scikit-learn's BaseEstimator, has it.
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
        kept = self._portraits() if hasattr(self, "_kept_portraits") else None
        rows, columns = (
            (side.sizes(), [one.name for one in kept[axis]] if kept else [""] * side.n_clusters)
            for axis, side in enumerate((self._coclustering.row, self._coclustering.column))
        )
        return text + show_blocks(means, rows, columns)

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
        object
            A notebook shows it.
        """
        check_is_fitted(self)
        # The report is made of estimators, so it cannot be known from here at import time.
        return import_module("ccot.report").show_report(self, X, height=height, **options)


def _lines(side: str, cluster: int, portrait: Portrait) -> list[dict[str, Any]]:
    """Return one line for every column that sets a cluster apart, or one that there is none."""
    head = {"side": side, "cluster": cluster, "name": portrait.name, "size": portrait.size}
    lines = [
        {
            "column": trait.title,
            "direction": "high" if trait.effect > 0 else "low",
            "amount": trait.amount,
            "mean": trait.value,
            "overall": trait.overall,
            "share": trait.share,
        }
        for trait in portrait.traits
    ]
    none = {"column": "", "direction": "average", "amount": ""}
    none |= dict.fromkeys(("mean", "overall", "share"), float("nan"))
    return [head | line for line in lines or [none]]
