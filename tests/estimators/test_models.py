import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ccot import CCOT, CCOTGW, TransportCoclustering, baselines, load_model
from ccot.datasets import make_latent_blocks
from ccot.io import ModelFileError
from ccot.persistence.model_file import VERSION, write_values
from tests.persistence.stored_models import FOLDER
from tests.persistence.stored_models import MODELS as STORED

BLOCKS = np.abs(make_latent_blocks([[1, 5, 9], [6, 1, 3]], 40, 30, sigma=0.3, random_state=0).data)


def counts():
    return np.random.default_rng(0).poisson(BLOCKS)


MODELS = {
    "ccot": lambda: CCOT(random_state=0).fit(BLOCKS),
    "ccot wide": lambda: CCOT(2, 2, random_state=0).fit(BLOCKS.T),
    "ccot sparse": lambda: CCOT(random_state=0).fit(sp.csr_array(counts() * (BLOCKS > 4))),
    "ccot cv": lambda: CCOT(reg="cv", n_samplings=2, random_state=0).fit(BLOCKS),
    "gw": lambda: CCOTGW().fit(BLOCKS),
    "gw linear": lambda: CCOTGW(kernel="linear", reg=50.0).fit(BLOCKS),
    "gw kernels": lambda: CCOTGW().fit_kernels(np.cov(BLOCKS), np.cov(BLOCKS.T)),
    "transport": lambda: TransportCoclustering(n_init=2, random_state=0).fit(BLOCKS),
    "transport missing": lambda: TransportCoclustering(n_init=2, random_state=0).fit(
        np.where(BLOCKS > 8.9, np.nan, BLOCKS)
    ),
    "transport counts": lambda: TransportCoclustering(n_init=2, random_state=0).fit(
        sp.csr_array(counts())
    ),
    "transport frame": lambda: TransportCoclustering(
        n_init=2, random_state=np.random.default_rng(0)
    ).fit(pd.DataFrame(BLOCKS, [f"r{i}" for i in range(40)], [f"c{i}" for i in range(30)])),
    **{
        name: lambda name=name: getattr(baselines, name)(2, 3, random_state=0, n_init=2).fit(BLOCKS)
        for name in baselines.__all__
    },
}
NEW = {"gw kernels": np.cov(BLOCKS), "ccot wide": BLOCKS.T}


def same(one, other):
    """Compare two values all the way down."""
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    elif sp.issparse(one):
        assert type(one) is type(other)
        assert (one != other).nnz == 0
    elif hasattr(one, "__dataclass_fields__"):
        assert type(one) is type(other)
        same(vars(one), vars(other))
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert type(one) is type(other)
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            same(*pair)
    else:
        assert one == other


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", MODELS)
def test_what_is_loaded_is_what_was_saved(name, tmp_path):
    model = MODELS[name]()
    again = load_model(model.save(tmp_path / "model.ccot"))
    assert type(again) is type(model)
    fitted = {key: value for key, value in vars(model).items() if key != "random_state"}
    same(fitted, {key: vars(again)[key] for key in vars(model) if key != "random_state"})
    X = NEW.get(name, BLOCKS)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        columns = X if name == "gw kernels" else X.T
        if name != "gw kernels":
            same(again.predict_columns(columns), model.predict_columns(columns))
        assert again.summary() == model.summary()
    if name.startswith("transport"):
        same(dict(again.cut(2, 2)), dict(model.cut(2, 2)))


def test_a_model_does_not_carry_its_matrix(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 200))
    path = TransportCoclustering(n_init=2, random_state=0).fit(X).save(tmp_path / "model.ccot")
    assert path.stat().st_size < X.nbytes / 4


def test_generators_are_not_kept_and_seeds_are(tmp_path):
    for given, kept in [(7, 7), (None, None), (np.random.default_rng(0), None)]:
        model = TransportCoclustering(n_init=2, random_state=given).fit(BLOCKS)
        assert load_model(model.save(tmp_path / "m.ccot")).random_state == kept


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_code_is_not_saved(tmp_path):
    model = CCOTGW(kernel=lambda x, y: float(x @ y), reg=50.0).fit(BLOCKS)
    with pytest.raises(ModelFileError, match=r"CCOTGW with kernel=.* holds no code: use one of"):
        model.save(tmp_path / "m.ccot")
    assert list(tmp_path.iterdir()) == []


def test_strangers_and_the_unfitted_are_not_saved(tmp_path):
    class Mine(CCOT):
        pass

    with pytest.raises(ModelFileError, match="Mine is not an estimator of ccot"):
        Mine().save(tmp_path / "m.ccot")
    with pytest.raises(ValueError, match="not fitted yet"):
        CCOT().save(tmp_path / "m.ccot")


@pytest.mark.parametrize(
    "values",
    [
        3,
        {"estimator": "Evil", "given": {}, "fitted": {}},
        {"estimator": "CCOT", "given": {"code": 1}, "fitted": {}},
        {"estimator": "CCOT", "given": {}, "fitted": {"a b": 1}},
        {"estimator": "CCOT", "given": {}, "fitted": {1: 1}},
        {"estimator": "CCOT", "given": {}, "fitted": {"fit": 1}},
        {"estimator": "CCOT", "given": {}, "fitted": {"__class__": 1}},
        {"estimator": "CCOT", "given": {}, "fitted": {}},
    ],
)
def test_files_that_hold_no_model_are_refused(tmp_path, values):
    path = write_values(tmp_path / "m.ccot", values, {}, "0")
    with pytest.raises(ModelFileError, match=r"holds no estimator|is damaged"):
        load_model(path)


def test_another_process_in_another_folder_predicts_the_same(tmp_path):
    model = MODELS["transport"]()
    path = model.save(tmp_path / "model.ccot")
    np.save(tmp_path / "X.npy", BLOCKS)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = (
        "import sys, numpy as np, ccot; "
        "print(*ccot.load_model(sys.argv[1]).predict(np.load(sys.argv[2])))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, path, tmp_path / "X.npy"],
        cwd=elsewhere, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert told.split() == [str(label) for label in model.predict(BLOCKS)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ccot")), ids=lambda path: path.stem)
def test_files_of_earlier_releases_are_read(path):
    points = STORED[path.stem.rsplit("-v", 1)[0]][1]
    expected = json.loads(path.with_suffix(".json").read_text())
    model = load_model(path)
    assert model.predict(points).tolist() == expected["rows"]
    assert model.predict_columns(points.T).tolist() == expected["columns"]
    assert model.summary() == expected["summary"]


def test_every_estimator_has_a_stored_file():
    assert {f"{name}-v{VERSION}" for name in STORED} <= {p.stem for p in FOLDER.glob("*.ccot")}
