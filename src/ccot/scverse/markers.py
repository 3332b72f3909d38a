"""Genes that distinguish groups of cells from all other cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from ccot.runtime.types import is_sparse
from ccot.scverse.counts import Counts


@dataclass(frozen=True)
class Expression:
    """Expression of genes in groups of cells: tables with a row per group and a column per gene."""

    means: np.ndarray
    variances: np.ndarray  # of the means; a single cell has none
    shares: np.ndarray  # of cells that have the gene

    @classmethod
    def of(cls, n_cells: Any, total: Any, squares: Any, expressed: Any) -> "Expression":
        """Return the expression, given sums over the cells of each group."""
        means = total / n_cells
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = (squares / n_cells - means**2) / (n_cells - 1)
        return cls(means, np.maximum(variances, 0), expressed / n_cells)


@dataclass(frozen=True)
class Comparison:
    """Each group and, for comparison, all other cells."""

    groups: list[str]
    genes: pd.Index
    inside: Expression
    outside: Expression
    where: str

    def scores(self) -> np.ndarray:
        """Return Welch's t; 0 where nothing varies."""
        error = np.sqrt(self.inside.variances + self.outside.variances)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = (self.inside.means - self.outside.means) / error
        return np.where(np.isfinite(scores), scores, 0)

    def as_stored(self, key: str, n_genes: int | None) -> dict[str, Any]:
        """Return what ``scanpy.tl.rank_genes_groups`` would have stored."""
        ranked = self.as_frame(None, n_genes).assign(pvals=np.nan, pvals_adj=np.nan)
        kinds = {"names": "O", "scores": "f4", "logfoldchanges": "f4"}
        kinds |= {"pvals": "f8", "pvals_adj": "f8"}
        places: dict[str, Any] = {"use_raw": self.where == "raw"}
        if self.where.startswith("layers/"):
            places["layer"] = self.where.removeprefix("layers/")
        return {
            "params": {"groupby": key, "reference": "rest", "method": "t-test", **places},
            **{name: self._records(ranked[name].to_numpy(), kind) for name, kind in kinds.items()},
            "pts": self._by_gene(self.inside.shares),
            "pts_rest": self._by_gene(self.outside.shares),
        }

    def as_frame(self, gene_clusters: pd.Series | None, n_genes: int | None) -> pd.DataFrame:
        """Return one row per group and gene, best first."""
        order = np.argsort(-self.scores(), axis=1, kind="stable")[:, :n_genes]

        def ranked(table: np.ndarray) -> np.ndarray:
            return np.take_along_axis(table, order, 1).ravel()

        columns = {
            "group": pd.Categorical(np.repeat(self.groups, order.shape[1]), self.groups),
            "names": self.genes.to_numpy()[order].ravel(),
            "scores": ranked(self.scores()),
            "logfoldchanges": ranked(fold_change(self.inside.means, self.outside.means)),
            "pct_nz_group": ranked(self.inside.shares),
            "pct_nz_reference": ranked(self.outside.shares),
        }
        if gene_clusters is not None:
            columns["gene_cluster"] = gene_clusters.array[order.ravel()]
        return pd.DataFrame(columns)

    def by_gene_cluster(self, gene_clusters: pd.Series) -> pd.DataFrame:
        """Return one row per group and gene cluster, averaged over its genes, best first."""
        codes, names = gene_clusters.cat.codes.to_numpy(), gene_clusters.cat.categories
        sizes = np.bincount(codes, minlength=len(names))

        def averaged(table: np.ndarray) -> np.ndarray:
            return (table @ np.eye(len(names))[codes] / sizes).ravel()

        inside, outside = averaged(self.inside.means), averaged(self.outside.means)
        columns = {
            "group": np.repeat(self.groups, len(names)),
            "names": np.tile(names.astype(str), len(self.groups)),
            "n_genes": np.tile(sizes, len(self.groups)),
            "logfoldchanges": fold_change(inside, outside),
            "pct_nz_group": averaged(self.inside.shares),
            "pct_nz_reference": averaged(self.outside.shares),
        }
        group = np.repeat(np.arange(len(self.groups)), len(names))
        order = np.lexsort((-columns["logfoldchanges"], group))
        # In files, the index of a table must be text.
        return pd.DataFrame(columns).iloc[order].set_axis(list(map(str, range(len(order)))))

    def _records(self, column: np.ndarray, kind: str) -> np.ndarray:
        table = column.reshape(len(self.groups), -1)
        return np.rec.fromarrays(list(table), dtype=[(group, kind) for group in self.groups])

    def _by_gene(self, table: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(table.T, index=self.genes.astype(str), columns=self.groups)


def compare_groups(counts: Counts, groups: pd.Series) -> Comparison:
    """Return each group of cells (a category) compared with all other cells that are in a group."""
    codes, n_groups = groups.cat.codes.to_numpy(), len(groups.cat.categories)
    total, squares, expressed = np.zeros((3, n_groups, counts.shape[1]))
    for part, rows in counts.log_rows():
        grouped = np.flatnonzero(codes[part] >= 0)
        entries = (np.ones(len(grouped)), (codes[part][grouped], grouped))
        members = sp.csr_array(entries, shape=(n_groups, rows.shape[0]))
        for table, values in ((total, rows), (squares, rows * rows), (expressed, rows != 0)):
            sums = members @ values
            table += sums.toarray() if is_sparse(sums) else sums
    n_cells = np.bincount(codes[codes >= 0], minlength=n_groups).astype(float)
    sums = n_cells[:, None], total, squares, expressed
    rest = (table.sum(axis=0) - table for table in sums)
    names = [str(group) for group in groups.cat.categories]
    tables = Expression.of(*sums), Expression.of(*rest)
    return Comparison(names, counts.genes, *tables, counts.where)


def fold_change(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Return log2 fold changes of means of logarithms, as scanpy computes them.

    Examples
    --------
    >>> import numpy as np
    >>> fold_change(np.log1p([4.0]), np.log1p([1.0])).round(6)
    array([2.])
    """
    if min(inside.min(), outside.min()) < 0:
        # Centred values cannot be turned into counts: only differences of logarithms are known.
        return (inside - outside) / np.log(2)
    return np.log2((np.expm1(inside) + 1e-9) / (np.expm1(outside) + 1e-9))
