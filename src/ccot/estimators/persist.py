"""Fitted estimators in a file and back, without running code from it."""

from __future__ import annotations

import os
from inspect import signature
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ccot import baselines
from ccot._version import __version__
from ccot.baselines import residual_bayesian
from ccot.blocks.fit import BlockCoclustering
from ccot.blocks.hierarchy import Hierarchy, Merge
from ccot.blocks.numbers import Candidate
from ccot.blocks.placement import BlockPlacement
from ccot.blocks.prepare import Preparation
from ccot.blocks.problem import Blocks
from ccot.coclustering import Side, StepCoclustering, StepSide
from ccot.draws import DrawPlacement
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.estimators.transport import TransportCoclustering
from ccot.io.model_file import ModelFileError, read_values, write_values
from ccot.regularisation import RegPath
from ccot.similarities import KernelPlacement, Landmarks, Similarities
from ccot.transport.sinkhorn import Status

_ESTIMATORS: dict[str, type[Any]] = {
    known.__name__: known
    for known in (
        CCOT,
        CCOTGW,
        TransportCoclustering,
        *(getattr(baselines, name) for name in baselines.__all__),
    )
}
VALUES = {
    known.__name__: known
    for known in (
        BlockCoclustering,
        BlockPlacement,
        Blocks,
        Candidate,
        DrawPlacement,
        Hierarchy,
        KernelPlacement,
        Landmarks,
        Merge,
        Preparation,
        RegPath,
        Side,
        Similarities,
        Status,
        StepCoclustering,
        StepSide,
    )
} | {"Beliefs": residual_bayesian.Beliefs, "BeliefSide": residual_bayesian.Side}


def save_model(estimator: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted estimator to a file.

    Parameters
    ----------
    estimator : estimator
        One of this package, fitted.
    path : path-like
        The file, by custom ``*.ccot``; replaced if it is there, and only by a complete one.

    Returns
    -------
    pathlib.Path
        The file.
    """
    name = type(estimator).__name__
    if _ESTIMATORS.get(name) is not type(estimator):
        raise ModelFileError(
            f"{name} is not an estimator of ccot: a model file holds one of "
            f"{', '.join(_ESTIMATORS)}"
        )
    check_is_fitted(estimator)
    given = {key: _plain(name, key, value) for key, value in estimator.get_params().items()}
    fitted = {key: value for key, value in vars(estimator).items() if key not in given}
    return write_values(
        path, {"estimator": name, "given": given, "fitted": fitted}, VALUES, __version__
    )


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator from a file; no code in the file is run.

    Parameters
    ----------
    path : path-like
        A file written by ``save`` or by ``ccot fit``.

    Returns
    -------
    estimator
        Predicts as the saved one did.

    Raises
    ------
    ccot.io.ModelFileError
        If the file is damaged, foreign or of a later version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ccot import TransportCoclustering, load_model
    >>> from ccot.datasets import load_simulated
    >>> matrix = load_simulated("D3", random_state=0).data
    >>> model = TransportCoclustering(random_state=0).fit(matrix)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_model(model.save(Path(folder, "d3.ccot")))
    >>> bool((again.predict(matrix) == model.predict(matrix)).all())
    True
    """
    values = read_values(path, VALUES)
    match values:
        case {"estimator": str(name), "given": dict(given), "fitted": dict(fitted)} if (
            name in _ESTIMATORS
        ):
            kind = _ESTIMATORS[name]
        case _:
            raise ModelFileError(f"{path} holds no estimator that this ccot knows")
    if not given.keys() <= signature(kind).parameters.keys():
        raise ModelFileError(f"{path} holds parameters that {name} does not have")
    if "row_labels_" not in fitted or not all(_may_be_fitted(kind, key) for key in fitted):
        raise ModelFileError(f"{path} holds something else than a fitted {name}")
    estimator = kind(**given)
    vars(estimator).update(fitted)
    return estimator


def _may_be_fitted(kind: type, key: Any) -> bool:
    """Tell whether a fit may set an attribute of this name: the class itself has none such."""
    proper = isinstance(key, str) and (key.endswith("_") or key.startswith("_"))
    return proper and key.isidentifier() and not hasattr(kind, key)


def _plain(estimator: str, name: str, value: Any) -> Any:
    """Return a parameter as a file can hold it."""
    if name == "random_state" and not isinstance(value, int | None):
        # A generator has moved on since the fit: there is no seed left to write down.
        return None
    if name == "checkpoint":
        return None
    if name == "verbose" and callable(value):
        return 0
    if callable(value):
        raise ModelFileError(
            f"{estimator} with {name}={value!r} cannot be saved, since a model file holds no "
            f"code: use one of the named choices of {name}, or keep the model in memory"
        )
    return value
