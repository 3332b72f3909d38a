"""Fitted estimators in a file and back, without running code from it."""

import os
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot._version import __version__
from ccot.estimators.base import BaseCoclustering, InductiveCoclustering
from ccot.persistence.model_file import ModelFileError, read_values, write_values
from ccot.persistence.model_schema import FITTED, check_fitted
from ccot.persistence.registry import stored_types

# Parameters that a model from a file does not bring along.
_HARMLESS: dict[str, Any] = {"checkpoint": None, "verbose": 0}


def known_estimators() -> dict[str, type[BaseCoclustering]]:
    """Return the classes that a model file may hold, by name."""
    # Whoever reads a file may not have imported what is in it.
    ours, baselines = import_module("ccot"), import_module("ccot.baselines")
    names = {"CCOT": ours, "CCOTGW": ours, "TransportCoclustering": ours}
    names |= dict.fromkeys(baselines.__all__, baselines)
    return {name: getattr(module, name) for name, module in names.items()}


def save_model(estimator: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted estimator to a file."""
    name = type(estimator).__name__
    known = known_estimators()
    if known.get(name) is not type(estimator):
        raise ModelFileError(
            f"{name} is not an estimator of ccot: only these can be saved: {', '.join(known)}"
        )
    check_is_fitted(estimator)
    given = {key: _plain(name, key, value) for key, value in estimator.get_params().items()}
    estimator._made_portraits()
    fitted = {key: value for key, value in vars(estimator).items() if key not in given}
    if odd := sorted(fitted.keys() - FITTED.keys()):
        raise ModelFileError(f"{odd[0]} cannot be saved, because it was not set by fit: delete it")
    values = {"estimator": name, "given": given, "fitted": fitted}
    return write_values(path, values, stored_types(), __version__)


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
    >>> from ccot import CCOT, load_model
    >>> from ccot.datasets import load_simulated
    >>> matrix = load_simulated("D3", random_state=0).data
    >>> model = CCOT(random_state=0).fit(matrix)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_model(model.save(f"{folder}/d3.ccot"))
    >>> bool((again.predict(matrix) == model.predict(matrix)).all())
    True
    """
    known = known_estimators()
    match read_values(path, stored_types()):
        case {"estimator": str(name), "given": dict(given), "fitted": dict(fitted)} if (
            name in known
        ):
            kind = known[name]
        case _:
            raise ModelFileError(f"{path} holds no estimator of this ccot: update ccot")
    # Folders and progress are not saved: they are parameters of the next fit.
    given |= {key: value for key, value in _HARMLESS.items() if key in given}
    try:
        check_fitted(fitted, Path(path).stat().st_size)
        estimator: Any = kind(**given)
        estimator._validate_params()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _restore(estimator, fitted)
    except MemoryError:
        raise
    except Exception as error:  # parts that contradict each other raise whatever comes of it
        reason = " ".join(str(error).split())[:200]
        raise ModelFileError(f"{path} is damaged ({reason}): fit and save again") from error
    return estimator


def _restore(estimator: Any, fitted: dict[str, Any]) -> None:
    """Set what a fit left; place one row and one column: parts that do not go together fail."""
    if isinstance(estimator, InductiveCoclustering):
        # Attributes that a file lacks follow from the co-clustering; the others keep their order.
        estimator._adopt(fitted["_coclustering"])
    estimator.__dict__ = {k: v for k, v in vars(estimator).items() if k not in fitted} | fitted
    if hasattr(estimator, "predict_columns"):
        estimator.predict(np.ones((1, estimator.n_features_in_)))
        estimator.predict_columns(np.ones((1, estimator._coclustering.column.placement.width)))
    if hasattr(estimator, "cut"):
        estimator.cut(1, 1)
    estimator.summary()


def _plain(estimator: str, name: str, value: Any) -> Any:
    """Return a parameter as a file can hold it."""
    # A generator has moved on since the fit: there is no seed left to write down.
    if name == "random_state" and not isinstance(value, int | None):
        return None
    if name == "checkpoint" or (name == "verbose" and callable(value)):
        return _HARMLESS[name]
    if callable(value):
        raise ModelFileError(
            f"{estimator} with {name}={value!r} cannot be saved, since a model file holds no "
            f"code: use one of the named choices of {name}, or do not save the model"
        )
    return value
