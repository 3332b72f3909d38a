"""Recommenders in a file and back, without running code from it."""

import os
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ccot._version import __version__
from ccot.estimators.models import known_estimators, load_model, save_model
from ccot.io.matrix import held_limit
from ccot.persistence.model_file import ModelFileError, read_values, write_values
from ccot.persistence.registry import stored_types
from ccot.recommend.recommender import BlockRecommender

_KIND = "BlockRecommender"


def save_recommender(model: BlockRecommender, path: str | os.PathLike[str]) -> Path:
    """Write a fitted recommender to a file; see :meth:`BlockRecommender.save`."""
    given = model.get_params(deep=False)
    seed = given["random_state"] if isinstance(given["random_state"], int) else None
    given |= {"coclustering": None, "like": model.like_, "verbose": 0, "random_state": seed}
    with tempfile.TemporaryDirectory() as folder:
        inner = save_model(model.coclustering_, Path(folder, "coclustering.ccot")).read_bytes()
    kept = "ratings", "user_names", "item_names", "user_ids", "item_ids"
    values = {"kind": _KIND, "given": given} | {name: getattr(model, f"{name}_") for name in kept}
    values["coclustering"] = np.frombuffer(inner, np.uint8)
    # Ratings tell who likes what: nobody else may read them.
    return write_values(path, values, {}, __version__, private=True)


def load_recommender(path: str | os.PathLike[str]) -> BlockRecommender:
    """Read a recommender from a file; no code in the file is run.

    Parameters
    ----------
    path : path-like
        A file written by :meth:`BlockRecommender.save` or by ``ccot fit-ratings``.

    Returns
    -------
    BlockRecommender
        Answers as the saved one did.

    Raises
    ------
    ccot.io.ModelFileError
        If the file is damaged or holds no recommender.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ccot.recommend import BlockRecommender, load_recommender
    >>> taste = np.array([[5, 1], [1, 5]])[np.arange(40) % 2][:, np.arange(20) % 2]
    >>> model = BlockRecommender(random_state=0).fit(taste)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_recommender(model.save(Path(folder, "taste.ccot")))
    >>> bool(again.predict(0, 1) == model.predict(0, 1))
    True
    """
    known_estimators()  # a model of any of them is no recommender, and nothing unknown
    match read_values(path, stored_types()):
        case {
            "kind": str(kind),
            "given": dict(given),
            "ratings": sp.csr_array() as ratings,
            "user_names": tuple(user_names),
            "item_names": tuple(item_names),
            "coclustering": np.ndarray() as inner,
            **more,
        } if kind == _KIND:
            pass
        case _:
            raise ModelFileError(
                f"{path} holds no recommender: make one with `ccot fit-ratings`, or with the "
                "save() of a fitted BlockRecommender"
            )
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(folder, "coclustering.ccot")
        stored.write_bytes(inner.tobytes())
        coclustering = load_model(stored)
    try:
        # Ratings, labels and names are compared before tables of all clusters are made.
        shape = len(coclustering.row_labels_), len(coclustering.column_labels_)
        if not ratings.shape == shape == (len(user_names), len(item_names)):
            raise ValueError("ratings, clusters and names are of different numbers")
        n_clusters = coclustering.n_row_clusters_ + coclustering.n_column_clusters_
        if 8 * n_clusters * sum(shape) > held_limit(Path(path).stat().st_size):
            raise ValueError(f"{n_clusters} clusters would take far more memory than the file")
        # Everything else follows from the ratings and the labels, exactly and at once.
        model = BlockRecommender(**{**given, "coclustering": coclustering, "verbose": 0})
        # Files of before have no identifiers.
        ids = {name: more.get(name) for name in ("user_ids", "item_ids")}
        return model.fit(ratings, user_names=user_names, item_names=item_names, **ids)
    except MemoryError:
        raise
    except Exception as error:  # parts that contradict each other raise whatever comes of it
        raise ModelFileError(f"{path} holds a recommender that does not fit ({error})") from error
