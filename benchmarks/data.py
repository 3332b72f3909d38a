"""Real matrices, which the repository does not ship: where they are, and how they are read.

``CCOT_DATA`` names the folder; without it ``shared/data`` beside the project folder is tried.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

PROJECT = Path(__file__).parents[1]
KINDS = {"text": None, "gene": None, "cells": None, "other": ("house_votes84", "senate109", "zoo")}


@dataclass(frozen=True)
class Labelled:
    """A matrix whose row classes are known."""

    kind: str
    name: str
    matrix: Any
    classes: np.ndarray

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.classes))


def data_home() -> Path | None:
    """Folder of real matrices, or None where there is none."""
    folder = Path(os.environ.get("CCOT_DATA", PROJECT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def need_data() -> Path:
    """Folder of real matrices; leaves the program with advice where there is none."""
    folder = data_home()
    if folder is None:
        raise SystemExit("no real data here: set CCOT_DATA to the folder that holds them")
    return folder


def labelled(kind: str) -> list[Labelled]:
    """All labelled matrices of a kind, by name."""
    paths = sorted((need_data() / kind).glob("*.npz"))
    wanted = KINDS[kind]
    found = [read(path) for path in paths if wanted is None or path.stem in wanted]
    return [data for data in found if data is not None]


def read(path: Path) -> Labelled | None:
    """One matrix; None where its rows have no classes."""
    with np.load(path, allow_pickle=False) as stored:
        if "row_labels" not in stored:
            return None
        if "X" in stored:
            matrix = stored["X"].astype(np.float64)
        else:
            # scikit-learn's K-means takes 32-bit indices only.
            places = (stored[part].astype(np.int32) for part in ("indices", "indptr"))
            parts = stored["data"].astype(np.float64), *places
            matrix = sp.csr_array(parts, shape=tuple(stored["shape"].tolist()))
        return Labelled(path.parent.name, path.stem, matrix, stored["row_labels"])


def without_empty(matrix: Any) -> tuple[Any, np.ndarray]:
    """Leave out rows and columns that sum to zero, which crash scikit-learn's co-clusterers.

    Returns the rest and a mask of the rows that stayed.
    """
    rows, columns = (np.asarray(matrix.sum(axis=axis)).ravel() > 0 for axis in (1, 0))
    return matrix[rows][:, columns], rows
