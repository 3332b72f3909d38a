"""How new rows are shared out among row clusters: probabilities, confidence, pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if

from ccot.estimators.base import InductiveCoclustering


def _takes_dense(estimator: Any) -> bool:
    # Checks of scikit-learn take whatever has predict_proba for sparse rows for a classifier.
    if hasattr(estimator, "_sparse_rows"):
        raise AttributeError("the fit was to a sparse matrix: transform(X) returns the same")
    return True


class ClusterShares(ClassNamePrefixFeaturesOutMixin, TransformerMixin, InductiveCoclustering):
    """Base of estimators whose placement shares rows out among clusters."""

    @available_if(_takes_dense)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return how probable each row cluster is for new rows, by the fitted blocks.

        Parameters
        ----------
        X : new rows, as :meth:`predict` takes them

        Returns
        -------
        ndarray of shape (n_new, n_row_clusters)
            Rows sum to 1, ``predict`` takes the largest; a row of gaps has the clusters' sizes.
            After a fit to a sparse matrix use :meth:`transform`, which returns the same.
        """
        return self.transform(X)

    def transform(self, X: Any) -> np.ndarray:
        """Return the probabilities of the row clusters for new rows, for the next step.

        Parameters
        ----------
        X : new rows, as :meth:`predict` takes them

        Returns
        -------
        ndarray of shape (n_new, n_row_clusters)
            A data frame if ``set_output`` asked for one.
        """
        return self._say("shares", X)

    def predict_confidence(self, X: Any) -> np.ndarray:
        """Return how sure the clusters of new rows are, as ``row_confidence_`` is for fitted ones.

        Parameters
        ----------
        X : new rows, as :meth:`predict` takes them

        Returns
        -------
        ndarray of shape (n_new,)
            Between 0 and 1; 0 for rows that hold nothing to go by.
        """
        return self._say("confidence", X)

    @property
    def _n_features_out(self) -> int:
        return self.n_row_clusters_
