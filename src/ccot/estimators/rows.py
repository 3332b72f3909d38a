"""What estimators share whose matrix may be read row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.estimators.base import BaseCoclustering
from ccot.sources import ArraySource, RowSource, as_source, is_source


class RowReader(BaseCoclustering):
    """Checks and predictions for matrices in memory and for those that are not."""

    def _check_source(self, X: Any) -> RowSource:
        """Return the rows of ``X``, or say what is wrong with it and what to do."""
        if not is_source(X):
            return ArraySource(self._check_matrix(X))
        source = as_source(X, allow_nan=self._allow_nan)
        if min(source.shape) < 2:
            raise ValueError(
                f"X has {source.shape[0]} rows and {source.shape[1]} columns: a co-clustering "
                "needs at least two of each"
            )
        self._check_numbers(*source.shape)
        self.n_features_in_ = source.shape[1]
        if source.column_names is not None:
            self.feature_names_in_ = np.array(source.column_names, dtype=object)
        return source

    def _check_new_source(self, X: Any) -> RowSource:
        """Return new rows, with the columns of the fitted matrix."""
        if not is_source(X):
            return ArraySource(self._check_new_rows(X))
        source = as_source(X, allow_nan=self._allow_nan)
        if source.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {source.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return source

    def predict(self, X: Any) -> np.ndarray:
        """Return the row clusters of new rows, without fitting anything again.

        Parameters
        ----------
        X : array-like, sparse matrix, or whatever ``fit`` reads row by row
            New rows, with the columns of the fitted matrix.

        Returns
        -------
        ndarray of shape (n_new,)
            Labels as in ``row_labels_``.
        """
        check_is_fitted(self)
        if not is_source(X):
            return super().predict(X)
        source, placement = self._check_new_source(X), self._coclustering.row.placement
        return np.concatenate([placement.labels(source.read(part)) for part in source.parts])
