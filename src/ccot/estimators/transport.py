"""TransportCoclustering: robust co-clustering by transport onto blocks."""

import warnings
from collections import Counter
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ccot.blocks.families import FAMILIES
from ccot.blocks.fit import BlockCoclustering, BlockSettings, counts_on_device, fit_matrix
from ccot.blocks.hierarchy import share_kept
from ccot.blocks.placement import BlockPlacement
from ccot.blocks.preparation import Preparation
from ccot.blocks.reproducibility import Reproducibility
from ccot.blocks.streaming import fit_block_source
from ccot.blocks.table_fit import TableCoclustering, fit_table
from ccot.blocks.table_problem import TablePlacement
from ccot.blocks.tables import CENTERS, SCALES, TablePreparation
from ccot.coclustering import Side
from ccot.estimators.base import COUNT, N_JOBS, is_read_by_row
from ccot.estimators.described import count
from ccot.estimators.tables import TableData, TableInput, warn_unread
from ccot.runtime.backends import is_device_csr, one_blas_thread
from ccot.runtime.run import Run
from ccot.runtime.types import is_sparse
from ccot.sources import RowSource


def _takes_dense(estimator: Any) -> bool:
    # Checks of scikit-learn take whatever has predict_proba for sparse rows for a classifier.
    if hasattr(estimator, "_sparse_rows"):
        raise AttributeError("the fitted matrix was sparse: transform(X) returns the same")
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class TransportCoclustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TableInput):
    r"""Co-clustering by transport onto blocks, for noisy data; chooses the numbers of clusters.

    The method uses the two ideas of the paper [1]_, optimal transport and jumps, in a way that also
    works with noisy data. It starts with too many clusters, found by K-means on leading singular
    vectors. Rows and columns are assigned in turn to a small table of blocks by semi-relaxed
    entropic transport. Then clusters are merged one by one, each time the pair that loses the least
    information. :doc:`/blocks` explains the method, :doc:`/numbers` how the numbers are chosen.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int or None, default=None
        Numbers of clusters; None: chosen from the data.
    family : {"auto", "gaussian", "poisson", "bernoulli"}, default="auto"
        Distribution of the entries of a block. ``"gaussian"``: real values, squared loss; missing
        values (NaN) are left out. ``"poisson"``: counts and amounts, corrected for the sums of rows
        and columns (information-theoretic loss); sparse counts are replaced by ``log(1 + x)``.
        ``"bernoulli"``: zeros and ones. ``"auto"`` chooses by the values; ``family_reason_`` says
        why. In a table of mixed columns, every column has its own distribution.
    scale : {"auto", "none", "standard", "robust", "log"}, default="auto"
        How columns are scaled. ``"auto"``: if columns differ in unit or kind, each column of
        numbers is divided by its standard deviation, skewed ones after a logarithm or root;
        otherwise numbers stay as they are. ``"standard"`` and ``"robust"`` always divide, by
        standard deviation or interquartile range. ``"log"`` takes logarithms.
    center : {"auto", "none", "columns", "rows", "both"}, default="auto"
        Which means are subtracted. ``"auto"``: if columns have the same unit and the gaussian
        family finds structure at every scale, column means, and row means unless the level of rows
        is at least 40 % of the variation within columns; see :doc:`/tables`.
    column_kinds : dict of str to str or None, default=None
        Kinds of columns, by name, which are then not recognised automatically: ``"number"``,
        ``"count"``, ``"yes/no"``, ``"category"``, ``"ordered"``, ``"date"``, ``"share"``,
        ``"money"``, and ``"identifier"``, ``"text"`` or ``"constant"`` to leave one out.
    criterion : {"auto", "reproducibility", "jump", "icl"}, default="auto"
        How the numbers are chosen. ``"auto"``: by the integrated completed likelihood (ICL) if its
        maximum is at a small number, otherwise by ``"reproducibility"``: rows are clustered by
        random halves of the columns and vice versa, and the numbers are those found again with half
        of the data, at a jump of the merge costs (given numbers are checked, too). ``"jump"``: as
        ``"auto"``, but by the jump alone, which is faster. ``"icl"``: by ICL alone.
    balanced, heteroscedastic : bool, default=False
        Clusters of equal size; a separate noise variance for every column (gaussian only).
    n_init : int or None, default=None
        Number of starts; None takes 24 on tiny matrices and down to 3 on large ones.
    max_iter, tol : int, default=200; float, default=1e-6
        Maximum number of sweeps of the final fit; share of changed labels at which they stop.
    max_passes : int or None, default=4
        Maximum number of sweeps over all rows, if blocks are found in a sample; they stop early
        when at most 0.2 % of the labels change. None: ``max_iter`` sweeps, or until ``tol``.
    device : str or None, default=None
        None: NumPy; otherwise a device of PyTorch, ``"cuda"`` for a GPU, in double precision. If
        its memory is too small, NumPy is used, with a warning. Of rows that are read part by part,
        only the sample uses it. A CSR matrix of PyTorch or CuPy on a device is used there.
    random_state, n_jobs : int, Generator, RandomState or None; int or None; default=None
        Seed of the starts and halves; number of threads (-1: all), with the same labels.
    checkpoint : path-like or None, default=None
        Folder of finished pieces, from which an interrupted fit continues: :doc:`/checkpoints`.
    verbose : int or callable, default=0
        Print progress if positive; a callable gets ``(message)`` or ``(stage, done, total)``.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_ : ndarray of int, int
        Cluster of each row and column; numbers of clusters.
    row_confidence_, column_confidence_ : ndarray of float
        Confidence of each label, 0 to 1: the posterior probability of the cluster, corrected for
        chance, times the share of half-data fits in which the row (column) stays in its cluster, if
        ``reproducibility_`` was estimated. 0 for empty rows and columns.
    reproducibility_ : BothSides
        ``row`` and ``column``: agreement of halves of the data for every number of clusters (mean
        and spread); how much of each cluster is found again; how often each row (column) stays in
        its cluster. None if ICL decided or halves were not compared (see ``criterion``). Rows of a
        mixed table are clustered by halves of the rows.
    candidates_ : tuple of Candidate
        Numbers of clusters with scores: the chosen ones, then the next best.
    row_merge_costs_, column_merge_costs_, hierarchy_ : ndarray of float, Hierarchy
        Information lost by merging k into k - 1 clusters, for k = 2, 3, ...; all merges, from the
        finest clusters to a single block, see :meth:`cut`.
    icl_, bic_ : float
        Criteria of the co-clustering, up to a constant of the data; larger is better.
    family_, family_reason_ : str
        The family, and why; ``"mixed"`` for a table of mixed columns.
    preparation_ : Preparation or TablePreparation
        What was done to the values: a sentence, and numbers for every column.
    column_signs_ : ndarray of shape (n_columns,)
        Direction of a column of a mixed table in its cluster, 1 or -1 (0: left out, label -1).
    block_means_ : ndarray of shape (n_row_clusters, n_column_clusters)
        Mean of each block; of a mixed table in standard deviations of the noise.
    rows_, columns_, biclusters_, n_features_in_, feature_names_in_, n_iter_
        As in scikit-learn; iterations are sweeps of the final fit.

    See Also
    --------
    CCOT, CCOTGW : The algorithms of the paper, for matrices with well-separated blocks.

    Notes
    -----
    A sweep costs O(nnz) for sparse and O(n d) for dense matrices, times the number of clusters
    for the part that does not depend on the data; memory is O(nnz + (n + d) k).

    References
    ----------
    .. [1] Laclau et al. (2017), as in :class:`CCOT`.
    .. [2] Dhillon, Mallela and Modha (2003). Information-theoretic co-clustering. KDD.
    .. [3] Keribin, Brault, Celeux and Govaert (2015). Estimation and selection for the latent
       block model on categorical data. Statistics and Computing 25.

    Examples
    --------
    >>> from ccot import TransportCoclustering
    >>> from ccot.datasets import load_simulated
    >>> noisy = load_simulated("D1", random_state=0, overlap="calibrated")
    >>> model = TransportCoclustering(random_state=0).fit(noisy.data)
    >>> model.n_row_clusters_, model.n_column_clusters_
    (3, 3)
    >>> model.family_, model.family_reason_
    ('gaussian', 'some values are negative')
    """

    criterion: str = "auto"
    balanced: bool = False
    n_init: int | None = None
    max_iter: int = 200
    tol: float = 1e-6
    max_passes: int | None = 4
    n_jobs: int | None = None

    _parameter_constraints = TableInput._parameter_constraints | {
        "family": [StrOptions({"auto", *FAMILIES})],
        "scale": [StrOptions(set(SCALES))],
        "center": [StrOptions(set(CENTERS))],
        "column_kinds": [dict, None],
        "criterion": [StrOptions({"auto", "reproducibility", "jump", "icl"})],
        "balanced": ["boolean"],
        "heteroscedastic": ["boolean"],
        "n_init": [COUNT, None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_passes": [COUNT, None],
        "n_jobs": N_JOBS,
    }

    @property
    def _allow_nan(self) -> bool:
        return self.family in ("auto", "gaussian")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Co-cluster a matrix or a table.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, AnnData, or a source of rows
            At least two rows and two columns. NaN is a missing value (gaussian family only). A data
            frame of pandas or polars, or a :class:`ccot.io.Table`, may hold numbers, words and
            dates; see :doc:`/tables`. A Dask or Zarr array, a memory-mapped ``.npy``, the path of a
            ``.npy``, Parquet or text file, and a :class:`ccot.sources.RowSource` are read by rows.
        y : ignored

        Returns
        -------
        self : TransportCoclustering
        """
        self._begin()
        is_csr = is_sparse(X) and X.format == "csr" and X.dtype.char in "fdilq"
        # A device checks large sparse counts faster.
        is_sent = is_csr and self.checkpoint is None
        sent = counts_on_device(X, self.family, self._given(BlockSettings)) if is_sent else X
        rows = self._check_source(X) if is_read_by_row(X) else self._check_rows(sent)
        given = X if sent is not X and is_device_csr(rows) else rows
        if self.checkpoint is None and not isinstance(rows, RowSource | TableData):
            rows = counts_on_device(rows, self.family, self._given(BlockSettings))
        if is_sparse(rows) or is_device_csr(rows):
            self._sparse_rows = True
        run = self._start(rows)
        # The same arithmetic on any number of cores; and on a busy machine, threads of BLAS mostly
        # wait for each other.
        with one_blas_thread():
            found = run.checkpoint.fit(lambda: self._fit(rows, run))
        return self._adopt(found)._keep_portraits(given)

    def _describe_fitted(self, matrix: Any) -> Any:
        # The copy on a device went with the fit.
        if not isinstance(matrix, RowSource | TableData):
            matrix = counts_on_device(matrix, self.family, self._given(BlockSettings))
        return super()._describe_fitted(matrix)

    @available_if(_takes_dense)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each row cluster for new rows.

        Parameters
        ----------
        X : new rows, as :meth:`predict` takes them

        Returns
        -------
        ndarray of shape (n_new, n_row_clusters)
            Rows sum to 1. A row without any value has the shares of the cluster sizes. After a fit
            to a sparse matrix, use :meth:`transform`, which does the same.
        """
        return self.transform(X)

    def transform(self, X: Any) -> np.ndarray:
        """Return the probabilities of the row clusters for new rows, as features for a pipeline.

        Parameters
        ----------
        X : new rows, as :meth:`predict` takes them

        Returns
        -------
        ndarray of shape (n_new, n_row_clusters)
            A data frame after ``set_output(transform="pandas")`` or ``"polars"``.
        """
        return self._say("shares", X)

    def predict_confidence(self, X: Any) -> np.ndarray:
        """Return the confidence of the clusters of new rows.

        Parameters
        ----------
        X : new rows, as :meth:`predict` takes them

        Returns
        -------
        ndarray of shape (n_new,)
            From 0 to 1; 0 for rows without any value.
        """
        return self._say("confidence", X)

    @property
    def _n_features_out(self) -> int:
        return self.n_row_clusters_

    def _fit(self, rows: Any, run: Run) -> BlockCoclustering:
        settings = self._given(BlockSettings)
        if isinstance(rows, TableData):
            found = fit_table(rows.parts or rows.table, rows.preparation, settings, run)
            if rows.parts is not None:
                warn_unread(sum(rows.parts.unread.values(), Counter()))
            return found
        if isinstance(rows, RowSource):
            return fit_block_source(rows, self.family, settings, run)
        return fit_matrix(rows, self.family, settings, run)

    @property
    def preparation_(self) -> Preparation | TablePreparation:
        """What was done to the values: a sentence, and numbers for every column."""
        return self._placement.preparation

    @property
    def prepared_block_means_(self) -> np.ndarray:
        """Block means of the prepared values; counts are divided by those expected from totals."""
        blocks = self._fitted.blocks
        return blocks.total / np.where(blocks.exposure > 0, blocks.exposure, np.nan)

    @property
    def column_signs_(self) -> np.ndarray:
        """Direction of each column within its cluster: 1 or -1; 0 for columns left out."""
        return getattr(self._fitted, "column_signs", np.ones(len(self.column_labels_)))

    def cut(self, n_row_clusters: int, n_column_clusters: int) -> Bunch:
        """Return a coarser (or finer) co-clustering of the same hierarchy.

        Parameters
        ----------
        n_row_clusters, n_column_clusters : int
            Numbers of clusters, at most those of the finest partition.

        Returns
        -------
        Bunch
            ``row_labels``, ``column_labels``, and ``share_kept`` of the finest blocks' information.
        """
        found, numbers = self._fitted, (n_row_clusters, n_column_clusters)
        for asked, most, what in zip(numbers, found.finest.shape, ("row", "column"), strict=True):
            if not 1 <= asked <= most:
                raise ValueError(f"the hierarchy has 1 to {most} {what} clusters, not {asked}")
        coarse = found.finest.merged(*map(found.hierarchy.cut, (0, 1), numbers))
        is_table = isinstance(found, TableCoclustering)
        columns, family = coarse.labels[1], "gaussian" if is_table else found.family
        return Bunch(
            row_labels=coarse.labels[0],
            column_labels=found.preparation.on_all_columns(columns, -1) if is_table else columns,
            share_kept=share_kept(FAMILIES[family], found.finest, coarse),
        )

    def score(self, X: Any, y: Any = None) -> float:
        """Return the log-likelihood of new rows per observed entry.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_columns)
            New rows; each in its predicted cluster.
        y : ignored

        Returns
        -------
        float
            Mean over rows, to compare fits of one family; of a mixed table, gain over one block.
        """
        return float(np.mean(self._placement.log_likelihood(self._check_new_rows(X))))

    @property
    def _fitted(self) -> BlockCoclustering:
        check_is_fitted(self)
        assert isinstance(self._coclustering, BlockCoclustering)
        return self._coclustering

    @property
    def _placement(self) -> BlockPlacement | TablePlacement:
        placement = self._fitted.row.placement
        assert isinstance(placement, BlockPlacement | TablePlacement)
        return placement

    def _adopt(self, found: BlockCoclustering):
        self.family_, self.family_reason_ = found.family, found.family_reason
        self.candidates_, self.hierarchy_ = found.candidates, found.hierarchy
        self.row_merge_costs_, self.column_merge_costs_ = map(found.hierarchy.costs, (0, 1))
        self.icl_, self.bic_ = found.icl, found.bic
        self.reproducibility_ = found.reproducibility
        for name in ("row", "column"):
            halves = getattr(found.reproducibility, name)
            # Numbers that were found, where noise was not drawn, are doubted in the summary.
            if halves is not None and not (halves.comes_back or np.isnan(halves.expected)):
                warnings.warn(_not_found_again(name, halves), stacklevel=3)
        if isinstance(found, TableCoclustering):
            asked, *others = found.candidates
            if any(one.n_row_clusters == 1 and one.score > asked.score for one in others):
                better = "one row cluster describes the table better than"
                warnings.warn(f"{better} the {asked.n_row_clusters} given", stacklevel=3)
        return super()._adopt(found)

    def _describe(self, name: str, side: Side, asked: int | None) -> list[str]:
        lines = super()._describe(name, side, asked)
        if name == "row":
            prepared = [f"  {self.preparation_.sentence}"] if self.preparation_.sentence else []
            if limits := getattr(self.preparation_, "limits", None):
                low, high = (f"{limit * self._unit:.3g}" for limit in limits)
                prepared += [f"  values below {low} count as {low}, those above {high} as {high}"]
            lines[:0] = [f"  family {self.family_}: {self.family_reason_}", *prepared]
        if name == "column" and isinstance(self.preparation_, TablePreparation):
            # A category is neither high nor low.
            columns = zip(self.column_signs_, self.preparation_.columns, strict=True)
            if high := [c.kind.name for sign, c in columns if sign < 0 and c.shares is None]:
                lines += [f"  high where the rest of their cluster is low: {', '.join(high[:10])}"]
        if (halves := getattr(self._fitted.reproducibility, name)) is not None:
            lines.append(f"    {_in_words(name, halves, side, asked is None)}")
        if asked is None and name == "column" and len(self.candidates_) > 1:
            others = ", ".join("{} x {}".format(*c.numbers) for c in self.candidates_[1:4])
            lines.append(f"  next best by {self.candidates_[0].criterion}: {others} clusters")
        return lines


def _in_words(name: str, halves: Reproducibility, side: Side, found: bool) -> str:
    """Say which clusters of one side are found again, and whether their number was found."""
    if not halves.comes_back:
        return f"warning: {_not_found_again(name, halves)}"
    (low, high), sizes = halves.plausible, side.sizes()
    lost = [f"{name[0].upper()}{k} ({count(int(sizes[k]), name)})" for k in halves.dissolved]
    if len(lost) == halves.n_clusters:
        return "no cluster is found again with half of the data"
    others = f"; {low} to {high} clusters would do as well" if low < high else ""
    if found and halves.n_clusters == (most := halves.numbers[-1]):
        others += f"; more than {most} clusters were not tried"
    which = f"all clusters but {', '.join(lost)}" if lost else "all clusters"
    return f"{which} are found again with half of the data{others}"


def _not_found_again(name: str, halves: Reproducibility) -> str:
    found = f"the {count(halves.n_clusters, f'{name} cluster')} are not found again"
    agree = f"two halves agree with a score of {max(halves.agreement, 0.0):.2f} (1: the same)"
    return f"{found} with half of the data: {agree}, hardly more than on random noise"
