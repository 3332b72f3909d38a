"""Checkpoints that an earlier version wrote are read under the names that classes have today."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ccot import CCOT, CCOTGW
from ccot.datasets import make_latent_blocks
from ccot.estimators.models import known_estimators
from ccot.persistence import checkpoint
from ccot.persistence.checkpoint_files import Piece
from ccot.persistence.model_file import read_values
from ccot.persistence.registry import stored_types
from ccot.scalings import draws, sampling
from ccot.sources import FunctionSource

FOLDER = Path(__file__).parent / "data" / "checkpoints"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
X = make_latent_blocks([[1, 5, 9], [6, 1, 3]], 24, 18, sigma=0.1, random_state=0).data.round(3)
TALL = make_latent_blocks([[1, 5, 9], [6, 1, 3]], 120, 6, sigma=0.1, random_state=0).data.round(3)
FITS = {
    "ccot": (CCOT(random_state=0, n_samplings=64), lambda: X),
    "ccot-rows": (CCOT(random_state=0), lambda: by_row()),
    "ccot-gw": (CCOTGW(random_state=0), lambda: X),
    "ccot-gw-landmarks": (CCOTGW(random_state=0, n_support=8, kernel_rank=6), lambda: X),
}


def by_row():
    return FunctionSource(lambda start, stop: TALL[start:stop], TALL.shape)


@pytest.mark.parametrize("name", NAMES)
def test_every_piece_is_read(name):
    known_estimators()  # which register what they store
    types = {**stored_types(), "_Piece": Piece}
    files = sorted((FOLDER / name).glob("*.pieces"))
    assert files
    for file in files:
        assert all(isinstance(piece, Piece) for piece in read_values(file, types))


@pytest.mark.parametrize("name", FITS)
def test_a_fit_goes_on_from_it(name, tmp_path, monkeypatch):
    folder = shutil.copytree(FOLDER / name, tmp_path / name)
    about = json.loads((folder / "checkpoint.json").read_text())["about"]
    # Another version of a library may compute other digits; here only names matter.
    monkeypatch.setattr(checkpoint, "version", about.get)
    monkeypatch.setattr(checkpoint, "__version__", about["ccot"])
    monkeypatch.setattr(draws, "_CHUNKS_A_TASK", 1)
    monkeypatch.setattr(sampling, "POOL_ROWS", 40)
    model, data = FITS[name]
    model.set_params(checkpoint=str(folder)).fit(data())
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    np.testing.assert_array_equal(model.row_labels_, expected["rows"])
    np.testing.assert_array_equal(model.column_labels_, expected["columns"])
