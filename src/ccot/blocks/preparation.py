"""Preparation of values for a family, for the fitted matrix and for unseen points."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from ccot.blocks.spectrum import low_rank
from ccot.persistence.registry import stored
from ccot.runtime.backends import NUMPY, Backend, is_device_csr, with_values
from ccot.runtime.types import Matrix, is_sparse

# Below this share of non-zeros, counts mostly show presence or absence; repeats are bursts.
_SPARSE_DENSITY = 0.25
_FEW = "few values differ from zero and none is negative"
# If at least this share of the entries equals the minimum, it is a floor, not a measurement.
_FLOOR_SHARE = 0.01
# A matrix is a table of traits if at least this share of its columns, but not all, is binary.
_TRAIT_SHARE = 0.1
# Variance grows with the mean if it follows a power of it above this, for amounts and for whole
# numbers, and the power is so many standard errors from zero.
_AMOUNT_SLOPE, _COUNT_SLOPE, _SLOPE_ERRORS = 0.5, 0.1, 3.0
# If the mean is this many standard deviations from zero, squares of values lose too many digits.
_FAR_FROM_ZERO = 1e3
# Entries more than so many robust standard deviations from the median are limited to this distance
# if at most this share is so far, and no row or column has many more of them than by chance.
_FAR_OUT, _RARE = 5.0, 0.02
_EFFECT_ROUNDS, _CELLS_AT_ONCE = 20, 2**20
# Units differ if the ranges of columns overlap less than the first; with many columns, the second.
_OVERLAP, _OVERLAP_MANY, _MANY_COLUMNS = 0.3, 0.2, 100
# Most columns and rows that are compared for units, and the quantiles of a range; ranges of fewer
# rows than the last overlap as little by chance.
_UNIT_COLUMNS, _UNIT_ROWS, _RANGE, _FEWEST_ROWS = 200, 20_000, (0.05, 0.95), 5
# Row levels are kept if they have at least this share of the column-centred variance.
_ROW_SHARE = 0.4


@stored()
@dataclass(frozen=True)
class Preparation:
    """How values are prepared for a family."""

    family: str
    logarithm: bool = False  # of 1 + x
    floor: float = 0.0  # subtracted from all values
    column_scale: np.ndarray | None = None  # columns are divided by it
    row_effect: np.ndarray | None = None  # subtracted, like the column effect
    column_effect: np.ndarray | None = None
    limits: tuple[float, float] | None = None  # values beyond become the nearer limit
    sentence: str = field(default="", compare=False)  # what was done and why

    def __str__(self) -> str:
        return self.sentence

    @property
    def center(self) -> str:
        """Which means are subtracted: none, those of columns, of rows, or both."""
        if self.row_effect is None:
            return "none" if self.column_effect is None else "columns"
        return "rows" if self.column_effect is None else "both"

    @property
    def changes_values(self) -> bool:
        """True if prepared values differ from the given ones."""
        done = self.column_scale, self.row_effect, self.column_effect, self.limits
        return self.logarithm or self.floor != 0 or any(one is not None for one in done)

    @property
    def n_effects(self) -> int:
        """Number of free parameters of the effects."""
        effects = [e for e in (self.row_effect, self.column_effect) if e is not None]
        # A constant can be moved from the row effects to the column effects: it counts once.
        return sum(map(len, effects)) - (len(effects) == 2)

    def matrix(self, X: Matrix, backend: Backend = NUMPY) -> Matrix:
        """Return the fitted matrix, prepared."""
        values = self._values(X, backend)
        if self.column_scale is not None:
            values = values / self.column_scale
        if self.row_effect is not None:
            values = values - self.row_effect[:, None]
        return values if self.column_effect is None else values - self.column_effect

    def rows(self, X: Matrix) -> Matrix:
        """Return unseen rows, prepared; a row's effect is estimated from the row itself."""
        return self.matrix(X) if self.row_effect is None else _centre(self._with_row_effect(X))

    def effects_of(self, X: Matrix) -> np.ndarray | None:
        """Return the row effects that :meth:`rows` subtracts, if any."""
        if self.row_effect is None:
            return None
        values = self._with_row_effect(X)
        return observed_mean(values, np.isfinite(values), axis=1)

    def columns(self, X: Matrix) -> Matrix:
        """Return unseen columns, the rows of ``X``, prepared with their own scales and effects."""
        values = self._values(X)
        if self.column_scale is not None:
            values = values / _spread(values.T)[:, None]
        if self.column_effect is not None:
            values = _centre(values)
        return values if self.row_effect is None else values - self.row_effect

    def _with_row_effect(self, X: Matrix) -> np.ndarray:
        """Return rows, prepared except for their own effects, as a dense matrix."""
        return replace(self, row_effect=None).matrix(_dense(X))

    def _values(self, X: Matrix, backend: Backend = NUMPY) -> Matrix:
        if is_sparse(X) and (self.center != "none" or self.limits is not None):
            X = X.toarray()
        if self.limits is not None:
            X = np.clip(X, *self.limits)
        if is_device_csr(X):
            return with_values(X, X.values().log1p()) if self.logarithm else X
        if self.logarithm and is_sparse(X):
            # Index arrays are shared, not copied.
            values = backend.by_rows(np.log1p, X.data)
            return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
        if self.logarithm:
            return np.log1p(X)
        if self.floor:
            return _dense(X) - self.floor
        return X


def _dense(X: Matrix) -> np.ndarray:
    return X.toarray() if is_sparse(X) else X


def choose_preparation(X: Matrix, family: str, scale: str = "auto") -> Preparation:
    """Return how values are prepared for a family."""
    if is_device_csr(X):
        return Preparation(family, logarithm=scale == "auto")
    if scale not in ("auto", "none"):
        return _scaled_as_asked(X, family, scale)
    if family == "poisson":
        if scale == "auto" and is_mostly_zero(X):
            # The tenth occurrence of a word says less than the first.
            return Preparation(family, logarithm=True)
        return Preparation(family, floor=_floor(X))
    if family == "bernoulli":
        return Preparation(family)
    if is_sparse(X):
        return Preparation(family, floor=_offset(X))
    if scale == "auto" and _is_table_of_traits(X):
        return Preparation(family, column_scale=_spread(X))
    # Without limits, each of a few outliers would be its own block.
    return Preparation(family, floor=_offset(X), limits=_limits(X))


def _scaled_as_asked(X: Matrix, family: str, scale: str) -> Preparation:
    """Return the preparation by a given scale."""
    if scale == "log":
        values = X.data if is_sparse(X) else X
        if values.size and np.nanmin(values) < 0:
            raise ValueError('scale="log" needs non-negative values: use another scale')
        return Preparation(family, logarithm=True)
    if family != "gaussian" or is_sparse(X):
        what = "a sparse matrix" if is_sparse(X) else f"the {family} family"
        raise ValueError(
            f'scale="{scale}" does not work with {what}: pass a dense matrix and '
            'family="gaussian", or scale="auto"'
        )
    spread = _spread(X)
    if scale == "robust":
        low, high = np.nanquantile(X, (0.25, 0.75), axis=0)
        spread = np.where(high > low, (high - low) / 1.349, spread)
    return Preparation(family, column_scale=spread)


def choose_effects(preparation: Preparation, X: Matrix) -> tuple[str, str]:
    """Return which means are subtracted if center="auto", and why."""
    share = row_level_share(_dense(preparation.matrix(X)))
    if share >= _ROW_SHARE:
        return "columns", f"rows differ in level: {share:.0%} of the variation within columns"
    return "both", "otherwise there is structure at every scale"


def with_effects(
    preparation: Preparation, X: Matrix, center: str = "both", reason: str = ""
) -> Preparation:
    """Return the preparation with means to subtract, which correspond to the degrees of counts."""
    if center == "none":
        return with_sentence(preparation, center, reason)
    left = _dense(preparation.matrix(X))
    column_effect, row_effect = np.zeros(left.shape[1]), np.zeros(left.shape[0])
    observed = np.isfinite(left)
    for _ in range(1 if observed.all() or center != "both" else _EFFECT_ROUNDS):
        if center != "rows":
            means = observed_mean(left, observed, axis=0)
            column_effect, left = column_effect + means, left - means
        if center != "columns":
            means = observed_mean(left, observed, axis=1)
            row_effect, left = row_effect + means, left - means[:, None]
    if center != "columns":
        preparation = replace(preparation, row_effect=row_effect)
    if center != "rows":
        preparation = replace(preparation, column_effect=column_effect)
    return with_sentence(preparation, center, reason)


_TAKEN_OUT = {
    "none": "row and column levels kept",
    "columns": "column means subtracted, row levels kept",
    "rows": "row means subtracted",
    "both": "row and column means subtracted",
}


def with_sentence(preparation: Preparation, center: str, reason: str = "") -> Preparation:
    """Return the preparation with a line that says what is done to values, and why."""
    done = "values as log(1 + x)" if preparation.logarithm else "values as they are"
    if preparation.column_scale is not None:
        done = "each column divided by its spread"
    if preparation.family == "poisson":
        done += "; the poisson family corrects for row and column sums"
    elif preparation.family == "gaussian":
        done += f"; {_TAKEN_OUT[center]}" + (f" ({reason})" if reason else "")
    return replace(preparation, sentence=done)


def are_device_counts(X: Any) -> bool:
    """Return True if a matrix on a device can stay there: mostly zeros, no negative values."""
    values = X.values()
    few = int(values.count_nonzero()) < _SPARSE_DENSITY * X.shape[0] * X.shape[1]
    return few and float(values.min()) >= 0 and float(values.max()) > 0


def is_mostly_zero(X: Matrix) -> bool:
    """Return True if few entries differ from zero; they are counted only if necessary."""
    stored = X.nnz / max(X.shape[0] * X.shape[1], 1) if is_sparse(X) else 1.0
    return stored < _SPARSE_DENSITY or density(X) < _SPARSE_DENSITY


def density(X: Matrix) -> float:
    """Return the share of entries that are not zero."""
    n_nonzero = X.count_nonzero() if is_sparse(X) else np.count_nonzero(X)
    return float(n_nonzero) / max(X.shape[0] * X.shape[1], 1)


def choose_family(X: Matrix) -> tuple[str, str]:
    """Return the family that suits the values, and why."""
    values = X.data if is_sparse(X) else X
    if values.size and np.isnan(values.min()):
        return "gaussian", "some entries are missing, and only the gaussian family leaves them out"
    if values.size and values.min() < 0:
        return "gaussian", "some values are negative"
    if is_mostly_zero(X):
        return "poisson", _FEW
    if all(((part == 0) | (part == 1)).all() for part in _parts(values)):
        return "bernoulli", "all values are 0 or 1"
    slope = _variance_slope(_dense(X))
    counts = all((part == np.round(part)).all() for part in _parts(values))
    if slope > (_COUNT_SLOPE if counts else _AMOUNT_SLOPE):
        kind = "counts" if counts else "amounts"
        return "poisson", f"{kind} whose variance grows with their mean (power {slope:.1f})"
    return "gaussian", f"values whose variance does not grow with their mean (power {slope:.1f})"


def settle_family(X: Matrix, asked: str, scale: str, center: str) -> tuple[str, str]:
    """Return the given family, or the one that fits the values, and why."""
    if is_device_csr(X):
        return "poisson", _FEW if asked == "auto" else "chosen by the user"
    if not is_sparse(X) and np.isnan(X).all():
        raise ValueError("X contains NaN only: pass a matrix with values")
    if asked == "auto":
        if scale not in ("auto", "none") or center != "auto":
            return "gaussian", "scale or center was given"
        name, reason = choose_family(X)
        is_amounts = name == "poisson" and reason.startswith("amounts") and not is_sparse(X)
        # The poisson family removes the levels of rows; the gaussian one can keep them.
        if is_amounts and (share := row_level_share(X)) >= _ROW_SHARE:
            return "gaussian", f"rows differ in level ({share:.0%} of the variation within columns)"
        return name, reason
    values = X.data if is_sparse(X) else X
    if asked == "poisson" and values.size and values.min() < 0:
        raise ValueError(
            "Negative values in data: the poisson family needs counts or amounts; use "
            'family="gaussian", or shift the values'
        )
    if asked == "bernoulli" and not np.isin(values, (0, 1)).all():
        raise ValueError(
            "the bernoulli family needs zeros and ones: threshold the values first, or use "
            'family="auto"'
        )
    return asked, "chosen by the user"


def _variance_slope(X: np.ndarray, n_bins: int = 10) -> float:
    """Return the power of the mean that the noise variance follows (Taylor's law)."""
    # Entries are binned by their low-rank approximation; if means hardly differ, the power is 0.
    mean = low_rank(X)
    edges = np.quantile(mean, np.linspace(0, 1, n_bins + 1)[1:-1])
    counts, centre, spread = np.zeros((3, n_bins))
    # In parts: bins and squares of a large matrix would each take as much memory as the matrix.
    for part in gen_batches(len(X), max(1, _CELLS_AT_ONCE // X.shape[1])):
        bins = np.searchsorted(edges, mean[part].ravel())
        counts += np.bincount(bins, minlength=n_bins)
        centre += np.bincount(bins, mean[part].ravel(), n_bins)
        spread += np.bincount(bins, ((X[part] - mean[part]) ** 2).ravel(), n_bins)
    centre, spread = centre / np.maximum(counts, 1), spread / np.maximum(counts, 1)
    used = (counts > 0) & (centre > 0) & (spread > 0)
    if used.sum() < 2 or np.ptp(np.log(centre[used])) < 1e-6:
        return 0.0
    log_mean = np.log(centre[used])
    slope = float(np.polyfit(log_mean, np.log(spread[used]), 1)[0])
    # The logarithm of a variance of n values has a standard error of about sqrt(2 / n).
    error = np.sqrt(2.0 / counts[used].min()) / np.linalg.norm(log_mean - log_mean.mean())
    return slope if abs(slope) > _SLOPE_ERRORS * error else 0.0


def _floor(X: Matrix) -> float:
    values = X.data if is_sparse(X) else X
    if is_sparse(X) and X.nnz < X.shape[0] * X.shape[1]:
        return 0.0
    smallest = float(values.min())
    shared = smallest > 0 and float(np.mean(values == smallest)) >= _FLOOR_SHARE
    return smallest if shared else 0.0


def _offset(X: Matrix) -> float:
    if is_sparse(X) and X.nnz < X.shape[0] * X.shape[1]:
        return 0.0
    # In parts: NumPy would copy the whole matrix to skip missing values.
    parts = _parts(X.data if is_sparse(X) else X)
    count = max(sum(np.count_nonzero(~np.isnan(part)) for part in parts), 1)
    mean = float(sum(np.nansum(part) for part in parts) / count)
    spread = float(sum(np.nansum((part - mean) ** 2) for part in parts) / count) ** 0.5
    return mean if abs(mean) > _FAR_FROM_ZERO * spread else 0.0


def _limits(X: np.ndarray) -> tuple[float, float] | None:
    """Return the limits of values if there are a few scattered outliers."""
    some = _some(X)
    centre = float(np.nanmedian(some))
    reach = _FAR_OUT * 1.4826 * float(np.nanmedian(np.abs(some - centre)))
    by_row, by_column = np.zeros(len(X)), np.zeros(X.shape[1])
    for part in gen_batches(len(X), max(1, _CELLS_AT_ONCE // X.shape[1])):
        is_far = np.abs(X[part] - centre) > reach
        by_row[part] = is_far.sum(axis=1)
        by_column += is_far.sum(axis=0)
    is_rare = 0 < by_row.sum() <= _RARE * X.size
    is_needed = reach > 0 and is_rare and _is_scattered(by_row) and _is_scattered(by_column)
    return (centre - reach, centre + reach) if is_needed else None


def _some(X: np.ndarray) -> np.ndarray:
    """Return random entries of a large matrix, the same each time; a small matrix as it is."""
    if X.size <= _CELLS_AT_ONCE:
        return X
    row, column = np.random.default_rng(0).integers(X.shape, size=(_CELLS_AT_ONCE, 2)).T
    return X[row, column]


def _is_scattered(counts: np.ndarray) -> bool:
    """Return True if counts could come from a Poisson distribution."""
    mean = float(counts.mean())
    return float(counts.max()) <= mean + 5 * mean**0.5 + 3


def _parts(values: np.ndarray) -> list[np.ndarray]:
    """Return the values in parts, so that copies of a part take little memory."""
    values = values.ravel(order="K")
    return [values[part] for part in gen_batches(values.size, _CELLS_AT_ONCE)]


def _is_table_of_traits(X: np.ndarray) -> bool:
    binary = np.ones(X.shape[1], bool)
    for part in gen_batches(len(X), max(1, _CELLS_AT_ONCE // X.shape[1])):
        some = X[part, binary]
        binary[binary] = np.all((some == 0) | (some == 1) | np.isnan(some), axis=0)
    return not binary.all() and float(binary.mean()) >= _TRAIT_SHARE


def _spread(X: np.ndarray) -> np.ndarray:
    observed = np.isfinite(X)
    mean = observed_mean(X, observed, axis=0)
    spread = np.sqrt(observed_mean((X - mean) ** 2, observed, axis=0))
    return np.where(spread > 0, spread, 1.0)


def _centre(values: np.ndarray) -> np.ndarray:
    return values - observed_mean(values, np.isfinite(values), axis=1)[:, None]


def observed_mean(values: np.ndarray, observed: np.ndarray, axis: int) -> np.ndarray:
    """Return the means of observed entries, 0 where there are none."""
    total = np.where(observed, values, 0.0).sum(axis=axis)
    return total / np.maximum(observed.sum(axis=axis), 1)


def differ_in_unit(X: np.ndarray) -> bool:
    """Return True if the columns of a matrix are measured in different units.

    Then their ranges (5 to 95 %) hardly overlap. For up to 100 columns without negative values, the
    ranges of logarithms must not overlap either.
    """
    if len(X) < _FEWEST_ROWS:
        return False
    X, are_many = X[:: max(1, len(X) // _UNIT_ROWS)], X.shape[1] > _MANY_COLUMNS
    limit = _OVERLAP_MANY if are_many else _OVERLAP
    with np.errstate(all="ignore"):
        overlap = _overlap(X)
        if overlap < limit and not are_many and np.fmin.reduce(X, axis=None) >= 0:
            overlap = max(overlap, _overlap(np.log(np.where(X > 0, X, np.nan))))
    return bool(overlap < limit)


def _overlap(X: np.ndarray) -> float:
    """Return the mean overlap of the ranges of two columns, as a share of the wider one."""
    held = np.any(np.isfinite(X), axis=0)
    held[held] = np.nanmax(X[:, held], axis=0) > np.nanmin(X[:, held], axis=0)
    columns = np.flatnonzero(held)
    if len(columns) < 2:
        return 1.0
    columns = np.random.default_rng(0).permutation(columns)[:_UNIT_COLUMNS]
    low, high = np.nanquantile(X[:, columns], _RANGE, axis=0)
    # Columns with hardly any different values have the range of all their values.
    is_point = high <= low
    low = np.where(is_point, np.nanmin(X[:, columns], axis=0), low)
    high = np.where(is_point, np.nanmax(X[:, columns], axis=0), high)
    shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    share = np.clip(shared, 0, None) / np.maximum((high - low)[:, None], high - low)
    return float(share[np.triu_indices(len(columns), 1)].mean())


def row_level_share(X: np.ndarray) -> float:
    """Return the share of the column-centred variance that is between the levels of rows."""
    observed = np.isfinite(X)
    left = np.where(observed, X - observed_mean(X, observed, axis=0), 0.0)
    level = observed_mean(left, observed, axis=1)
    whole = float((left**2).sum())
    return float((observed.sum(axis=1) * level**2).sum()) / whole if whole > 0 else 0.0
