"""What all estimators share: checking input, attributes, tables and files, unseen points."""

import os
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields, replace
from datetime import date, timedelta
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, BiclusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ccot.coclustering import Coclustering, Partition, Side
from ccot.estimators.described import DescribedClusters
from ccot.io.frames import has_times, is_frame, row_names, table_from_frame
from ccot.persistence.pickles import VersionedPickle
from ccot.runtime.backends import is_device_csr
from ccot.runtime.progress import LineProgress
from ccot.runtime.run import Progress, RandomState, Run, as_generator, no_progress
from ccot.runtime.types import Matrix, is_sparse
from ccot.scalings.jumps import DETECTORS
from ccot.scalings.steps import StepCoclustering, StepSide
from ccot.sources import RowSource, as_source, is_source

# What parameters may be.
COUNT = Interval(Integral, 1, None, closed="left")
N_JOBS = [COUNT, Interval(Integral, None, -1, closed="right"), None]
POSITIVE = Interval(Real, 0, None, closed="neither")


class BaseCoclustering(VersionedPickle, DescribedClusters, BiclusterMixin, BaseEstimator):
    """Base of all co-clustering estimators, the baselines included; a subclass has a ``fit``."""

    random_state: RandomState
    # Formats of sparse matrices that are taken as they are; False takes none.
    _accept_sparse: ClassVar[Any] = ("csr", "csc")
    _allow_nan: bool = False
    _nan_advice: ClassVar[str] = (
        "use TransportCoclustering (--method transport), which leaves missing values out"
    )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allow_nan
        tags.input_tags.sparse = bool(self._accept_sparse)
        return tags

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Co-cluster ``X`` and return the labels of its rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
        y : ignored

        Returns
        -------
        row_labels_ : ndarray of shape (n_rows,)
        """
        # Every subclass has a fit of its own; a stub here would only hide one that is missing.
        return self.fit(X, y).row_labels_  # type: ignore[attr-defined]

    @property
    def rows_(self) -> np.ndarray:
        """Boolean array (n_biclusters, n_rows): the rows of each block."""
        check_is_fitted(self)
        clusters = np.repeat(np.arange(self.n_row_clusters_), self.n_column_clusters_)
        return clusters[:, None] == self.row_labels_

    @property
    def columns_(self) -> np.ndarray:
        """Boolean array (n_biclusters, n_columns): the columns of each block."""
        check_is_fitted(self)
        clusters = np.tile(np.arange(self.n_column_clusters_), self.n_row_clusters_)
        return clusters[:, None] == self.column_labels_

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted estimator to a file that :func:`ccot.load_model` reads.

        Parameters
        ----------
        path : path-like
            The file, usually ``*.ccot``. An existing file is replaced when the new one is complete.

        Returns
        -------
        pathlib.Path
        """
        # The registry knows every estimator, so it cannot be known from here at import time.
        from ccot.estimators.models import save_model

        return save_model(self, path)

    @property
    def _checks(self) -> dict[str, Any]:
        sparse = self._accept_sparse
        return {"accept_sparse": sparse, "dtype": np.float64, "ensure_all_finite": False}

    def _check_matrix(self, X: Any) -> Matrix:
        """Return ``X`` as float64, dense or CSR, or say what is wrong with it and what to do."""
        options = self._checks | {"ensure_min_samples": 2, "ensure_min_features": 2}
        try:
            checked = _floats(validate_data, self, _numbers(X), **options)
        except (TypeError, ValueError) as error:
            if not is_frame(X) or not (words := table_from_frame(X).words()):
                raise
            raise ValueError(
                f"columns {words[:8]} are not numeric: drop them, or use TransportCoclustering"
            ) from error
        self._check_numbers(*checked.shape)
        # Only frames name their rows.
        if not _is_plain(X) and (names := row_names(X)) is not None:
            self.row_names_in_ = names
        return self._check_finite(checked)

    def _check_finite(self, X: Any) -> Matrix:
        """Refuse infinity, and NaN unless it is allowed; entries given in parts are added up."""
        if is_sparse(X) and not X.has_canonical_format:
            X = X.copy()  # the arrays may be the caller's
            X.sum_duplicates()
        values = X.data if is_sparse(X) else X
        bad = np.isinf(values) if self._allow_nan and not is_sparse(X) else ~np.isfinite(values)
        if not bad.any():
            return X
        where = np.argwhere(bad)[0]
        if is_sparse(X):
            coo = X.tocoo()
            where = coo.row[where[0]], coo.col[where[0]]
        row, column = map(int, where)
        name = "NaN" if np.isnan(values[bad]).any() else "infinity"
        advice = f", or {self._nan_advice}" if name == "NaN" and not is_sparse(X) else ""
        raise ValueError(
            f"Input X contains {name} ({int(bad.sum())} entries that are NaN or inf, the first one "
            f"in row {row}, column {column}): drop these rows or columns, or impute the entries "
            f"(for example with sklearn.impute.SimpleImputer){advice}"
        )

    def _describe_given(self, X: Any, columns: Any) -> Any:
        return self._describe_matrix(as_numbers(X), columns, row_names(X))

    def _begin(self) -> None:
        """Check the parameters, and drop what an earlier fit left and the next may not set."""
        self._validate_params()
        for name in _FORGOTTEN:
            self.__dict__.pop(name, None)

    def _check_numbers(
        self, n_rows: int, n_columns: int, where: str = "there are to cluster"
    ) -> None:
        """Refuse to make more clusters than there are points."""
        for name, asked, size, what in (
            ("n_row_clusters", self.n_row_clusters, n_rows, "rows"),
            ("n_column_clusters", self.n_column_clusters, n_columns, "columns"),
        ):
            if asked is not None and asked > size:
                # An estimator that takes None finds the number.
                finds = None in self._parameter_constraints[name]
                raise ValueError(
                    f"{name}={asked} is more than the {size} {what} {where}: pass at most "
                    f"{size}{', or None to let it be chosen' if finds else ''}"
                )


@dataclass(eq=False, repr=False)
class InductiveCoclustering(BaseCoclustering):
    """Base of the estimators that place unseen points; a ``fit`` ends with :meth:`_adopt`."""

    n_row_clusters: int | None = None
    n_column_clusters: int | None = None
    _: KW_ONLY
    device: str | None = None
    random_state: RandomState = None
    checkpoint: str | os.PathLike[str] | None = None
    verbose: int | Progress = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_row_clusters": [COUNT, None],
        "n_column_clusters": [COUNT, None],
        "max_iter": [COUNT],
        "device": [str, None],
        "random_state": "no_validation",
        "checkpoint": [str, os.PathLike, None],
        "verbose": ["verbose", callable],
    }

    def predict(self, X: Any) -> np.ndarray:
        """Return the row clusters of new rows, without fitting anything again.

        Parameters
        ----------
        X : array-like, sparse matrix, or anything that ``fit`` reads row by row
            New rows, with the columns of the fitted matrix.

        Returns
        -------
        ndarray of shape (n_new,)
            Labels as in ``row_labels_``.
        """
        return self._say("labels", X)

    def _say(self, what: str, X: Any) -> np.ndarray:
        """Return what the placement of rows says of new ones, by the name of its method."""
        check_is_fitted(self)
        say = getattr(self._coclustering.row.placement, what)
        if not is_read_by_row(X):
            return say(self._check_new_rows(X))
        source = self._check_new_source(X)
        return np.concatenate([say(source.read(part)) for part in source.parts])

    def predict_columns(self, X: Any) -> np.ndarray:
        """Return the column clusters of new columns, without fitting anything again.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_rows)
            New columns, each as one row of ``X`` with a value for every row of the fitted matrix.

        Returns
        -------
        ndarray of shape (n_new,)
            Labels as in ``column_labels_``.
        """
        check_is_fitted(self)
        checked = self._check_finite(_floats(check_array, _numbers(X), **self._checks))
        expected = self._coclustering.column.placement.width
        if checked.shape[1] != expected:
            raise ValueError(
                f"X has {checked.shape[1]} values for each new column, but the fitted columns have "
                f"{expected}: pass one new column per row of X"
            )
        return self._coclustering.column.placement.labels(self._in_unit(checked))

    def _check_matrix(self, X: Any) -> Matrix:
        """Return ``X`` as float64, in a unit in which its squares are finite."""
        checked = super()._check_matrix(X)
        if (unit := _unit_of(checked)) != 1.0:
            self._unit = unit
        return self._in_unit(checked)

    def _in_unit(self, X: Matrix) -> Matrix:
        return X if self._unit == 1.0 else X / self._unit

    def _check_new_rows(self, X: Any) -> Matrix:
        """Return new rows as float64, with the columns of the fitted matrix."""
        checked = _floats(validate_data, self, _numbers(X), reset=False, **self._checks)
        return self._in_unit(self._check_finite(checked))

    def _check_source(self, X: Any) -> RowSource:
        """Return the rows of ``X``, or say what is wrong with it and what to do."""
        source = as_source(X, allow_nan=self._allow_nan)
        check_shape(*source.shape)
        self._check_numbers(*source.shape)
        self.n_features_in_ = source.shape[1]
        if source.column_names is not None:
            self.feature_names_in_ = np.array(source.column_names, dtype=object)
        return source

    def _check_new_source(self, X: Any) -> RowSource:
        """Return new rows, with the columns of the fitted matrix."""
        if not is_read_by_row(X):
            return as_source(self._check_new_rows(X), allow_nan=self._allow_nan)
        source = as_source(X, allow_nan=self._allow_nan)
        if source.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {source.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return source

    def _start(self, *data: Any) -> Run:
        """Return what a fit to these data is given: random numbers, progress, checkpoint."""
        rng = as_generator(self.random_state)
        run = Run(rng, self._progress, n_jobs=getattr(self, "n_jobs", None))
        if self.checkpoint is None:
            return run
        # Few fits keep checkpoints: what reads and writes them is loaded for those alone.
        from ccot.persistence.checkpoint import open_checkpoint

        return replace(run, checkpoint=open_checkpoint(self, data, rng))

    def _given(self, settings: Any, **others: Any) -> Any:
        """Return settings that are called as the parameters are, with others that are not."""
        names = {field.name for field in fields(settings)} - others.keys()
        return settings(**{name: getattr(self, name) for name in names}, **others)

    def _adopt(self, found: Coclustering):
        """Put a co-clustering on the attributes."""
        self._coclustering = found
        for name in ("_to_describe", "_kept_portraits"):
            self.__dict__.pop(name, None)
        row, column = found.row, found.column
        self.row_labels_, self.column_labels_ = row.labels, column.labels
        self.n_row_clusters_, self.n_column_clusters_ = row.n_clusters, column.n_clusters
        self.row_confidence_, self.column_confidence_ = row.confidence, column.confidence
        self.n_iter_ = found.n_iter
        if found.block_means is not None:
            self.block_means_ = found.block_means * self._unit
        return self

    @property
    def _progress(self) -> Progress:
        if callable(self.verbose):
            return self.verbose
        return LineProgress(type(self).__name__) if self.verbose else no_progress

    def _partition(self, side: str) -> Side:
        return self._coclustering.row if side == "row" else self._coclustering.column


class BaseStepCoclustering(InductiveCoclustering):
    """Base of the estimators that read clusters off the steps of scaling vectors."""

    _parameter_constraints = InductiveCoclustering._parameter_constraints | {
        "reg": [POSITIVE, StrOptions({"cv"})],
        "detector": [StrOptions(set(DETECTORS))],
        "tol": [POSITIVE],
    }

    def _adopt(self, found: StepCoclustering):
        row, column = found.row, found.column
        self.row_log_scaling_, self.column_log_scaling_ = row.log_scaling, column.log_scaling
        self.row_jumps_, self.column_jumps_ = row.jumps, column.jumps
        self.row_jump_strength_ = row.jump_strength
        self.column_jump_strength_ = column.jump_strength
        self.row_cluster_votes_, self.column_cluster_votes_ = row.number_votes, column.number_votes
        # A minority of draws that did not converge is outvoted by those that did.
        if found.share_converged < 0.5:
            warnings.warn(
                f"{1 - found.share_converged:.0%} of the transport problems {found.status.value}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.reg_ = found.reg
        if found.reg_path is not None:
            self.reg_path_ = found.reg_path
        return super()._adopt(found)

    def _describe(self, name: str, side: Partition, asked: int | None) -> list[str]:
        assert isinstance(side, StepSide)
        lines = super()._describe(name, side, asked)
        if len(side.number_votes) > 1:
            votes = (f"{number}: {max(n, 0.01):.0%}" for number, n in side.number_votes.items())
            lines.append(f"    number of {name} clusters over the draws: {', '.join(votes)}")
        if asked is None and side.n_clusters == 1 and np.ptp(side.log_scaling) > 0:
            lines.append(f"    the sorted {name} scalings are smooth: no jump is significant")
        return lines


_FORGOTTEN = ("reg_path_", "block_means_", "feature_names_in_", "row_names_in_", "_unit",
              "_file_options", "_sparse_rows")  # fmt: skip
# Values beyond these are divided by a power of two before anything is squared.
SMALL, LARGE = 1e-50, 1e50


def _is_plain(X: Any) -> bool:
    """Return True for a matrix that is in memory and has no names."""
    return (isinstance(X, np.ndarray) and not isinstance(X, np.memmap)) or is_sparse(X)


def is_read_by_row(X: Any) -> bool:
    """Return True for a matrix that is read row by row rather than taken as a whole."""
    return not _is_plain(X) and is_source(X)


def check_shape(n_rows: int, n_columns: int) -> None:
    """Refuse what has a single row or column."""
    if min(n_rows, n_columns) < 2:
        problem = f"X has {n_rows} rows and {n_columns} columns"
        raise ValueError(f"{problem}: co-clustering needs at least two of each")


def _unit_of(X: Matrix) -> float:
    """Return the power of two to divide by where squares of the values would not be finite."""
    values = X.data if is_sparse(X) else X
    # Without a copy of the values; missing ones are passed over.
    high, low = (f.reduce(values, axis=None, initial=0.0) for f in (np.fmax, np.fmin))
    largest = float(max(high, -low))
    if largest == 0 or SMALL < largest < LARGE:
        return 1.0
    return float(np.ldexp(1.0, np.frexp(largest)[1] - 1))


def _floats(check: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Let scikit-learn make floats, and refuse whole numbers that are too large for one."""
    try:
        return check(*given, **options)
    except OverflowError as error:
        raise ValueError(
            "X contains a whole number that is too large for a float: drop its row or column. "
            "If its digits are a code, pass a data frame with this column as text"
        ) from error
    except ValueError as error:
        # Text in an array of objects; columns of frames are named elsewhere.
        if is_frame(given[-1]) or not str(error).startswith("could not convert string"):
            raise
        raise ValueError(_TEXT) from error


_TEXT = (
    "X contains text where numbers are expected (could not convert string to float): "
    "drop those columns, or pass a data frame to TransportCoclustering, which takes words"
)


def _numbers(X: Any) -> Any:
    """Refuse text and dates with a message that helps; the rest is scikit-learn's to check."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    X = np.asarray(X) if isinstance(X, list | tuple) else X
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    first = np.asarray(X).flat[0:1] if kind == "O" else ()
    is_time = kind in ("M", "m") or any(isinstance(one, date | timedelta) for one in first)
    if is_time or (is_frame(X) and has_times(X)):
        raise ValueError(
            "X contains dates or times where numbers are expected: turn them into "
            "numbers, such as days since a date, or pass a data frame to TransportCoclustering"
        )
    if kind in ("U", "S"):
        raise ValueError(_TEXT)
    return X


def as_numbers(X: Any) -> Any:
    """Return a matrix that is described or shown as fits read it: masked entries are missing."""
    if is_device_csr(X):
        return X
    return _floats(check_array, _numbers(X), accept_sparse=("csr", "csc"), ensure_all_finite=False)
