"""MovieLens-100K, read from the original files or downloaded from its publisher."""

import os
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from ccot.datasets.download import download

_URL = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"
_MD5 = "0e33842e24a9c977be4e0107933c0723"
_FILES = ("u.data", "u.item", "u.user", "u.genre")


def fetch_movielens_100k(data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Return the MovieLens-100K ratings: 943 users, 1682 movies, 100,000 ratings from 1 to 5.

    The set may not be redistributed, so it is not part of this package. A folder with the original
    files is read; where there is none, the official archive is downloaded once (5 MB) and kept.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds the files ``u.data``, ``u.item``, ``u.user`` and ``u.genre``, or a folder
        ``ml-100k`` with them, or the archive, which is downloaded to it otherwise; by default that
        named by the environment variable ``CCOT_DATA``, or ``ccot`` in the user's cache folder.

    Returns
    -------
    Bunch
        ``data``, a sparse array (943, 1682) of ratings; ``titles``, ``years`` (NaN where unknown),
        ``genres`` (boolean, 1682 x 19) and ``genre_names``; ``ages``, ``sexes``, ``occupations``.

    See Also
    --------
    ccot.recommend.BlockRecommender : What to do with ratings.

    References
    ----------
    .. [1] Harper, F. M. and Konstan, J. A. (2015). The MovieLens datasets: history and context.
       ACM Transactions on Interactive Intelligent Systems 5.

    Examples
    --------
    >>> from ccot.datasets import fetch_movielens_100k
    >>> movies = fetch_movielens_100k()  # doctest: +SKIP
    >>> movies.data.shape, movies.titles[0]  # doctest: +SKIP
    ((943, 1682), 'Toy Story (1995)')
    """
    home = Path(data_home) if data_home is not None else _default_home()
    try:
        return _parsed(_folder(home))
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"the files of MovieLens-100K in {home} are damaged ({error}): put the original ones "
            "there, or remove them to download them again"
        ) from error


def _parsed(folder: Path | zipfile.Path) -> Bunch:

    def lines(name: str) -> list[str]:
        text = (folder / name).read_bytes().decode("latin-1")
        return [line for line in text.splitlines() if line.strip()]

    user, movie, rating, _ = np.array([line.split("\t") for line in lines("u.data")], np.int64).T
    items = [line.split("|") for line in lines("u.item")]
    people = [line.split("|") for line in lines("u.user")]
    entries = rating.astype(np.float64), (user - 1, movie - 1)
    return Bunch(
        data=sp.csr_array(entries, shape=(len(people), len(items))),
        titles=np.array([item[1] for item in items]),
        years=np.array([float(item[2][-4:] or "nan") for item in items]),
        genres=np.array([item[5:] for item in items]) == "1",
        genre_names=np.array([line.split("|")[0] for line in lines("u.genre")]),
        ages=np.array([int(person[1]) for person in people]),
        sexes=np.array([person[2] for person in people]),
        occupations=np.array([person[3] for person in people]),
    )


def _default_home() -> Path:
    if "CCOT_DATA" in os.environ:
        return Path(os.environ["CCOT_DATA"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ccot"


def _folder(home: Path) -> Path | zipfile.Path:
    """Return the folder of the files, which may be in the archive."""
    for folder in (home, home / "ml-100k"):
        if all((folder / name).is_file() for name in _FILES):
            return folder
    return zipfile.Path(download(_URL, home / "ml-100k.zip", md5=_MD5), "ml-100k/")
