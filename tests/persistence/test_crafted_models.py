"""Models whose fields somebody changed, written back whole: refused in words, or of use."""

import io
import json
import random
import time
import tracemalloc
import zipfile
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ccot import CCOT, CCOTGW, TransportCoclustering, baselines, load_model
from ccot.datasets import make_latent_blocks
from ccot.io import ModelFileError
from ccot.recommend import BlockRecommender, load_recommender
from ccot.report import write_report

SIMULATED = make_latent_blocks([[1, 5], [6, 1]], 24, 16, sigma=0.1, random_state=0).data
COUNTS = np.random.default_rng(0).poisson(np.abs(SIMULATED))
GROUP = np.arange(60) % 2
TABLE = pd.DataFrame({
    "length": GROUP * 4 + np.random.default_rng(0).normal(size=60),
    "colour": np.where(GROUP, "red", "blue"),
    "eggs": np.random.default_rng(1).poisson(1 + 9 * GROUP),
    "seen": pd.to_datetime("2020-01-01") + pd.to_timedelta(GROUP * 100 + np.arange(60), "D"),
    "tame": GROUP == 1,
    "size": pd.Categorical(np.where(GROUP, "high", "low"), ["low", "high"], ordered=True),
})  # fmt: skip
TASTE = np.array([[5, 1], [1, 5]])[np.arange(24) % 2][:, np.arange(16) % 2]
# What any value may be replaced by.
VALUES = (
    None, True, -1, 0, 1, 7000, 2**31, 2**40, 2**63, 10**30, -0.5, 0.0, 0.5, 1e-320, 1e308,
    "", "a", "../../a", "poisson", "number", [],
    {}, [1, 2], ["a"], [[[]]], {"array": 0}, {"array": 10**6}, {"tuple": []}, {"float": "nan"},
    {"float": "inf"},
)  # fmt: skip


def fitted(few=False):
    """Return models of every kind, or a few."""
    if few:
        return [TransportCoclustering(2, 2, random_state=0).fit(SIMULATED),
                BlockRecommender(random_state=0).fit(TASTE)]  # fmt: skip
    rivals = [getattr(baselines, name) for name in baselines.__all__]
    return [
        TransportCoclustering(2, 2, random_state=0).fit(SIMULATED),
        TransportCoclustering(random_state=0).fit(COUNTS),
        TransportCoclustering(criterion="reproducibility", random_state=0).fit(SIMULATED),
        TransportCoclustering(random_state=0).fit(TABLE),
        CCOT(2, 2, n_samplings=4, random_state=0).fit(SIMULATED),
        CCOTGW(2, 2).fit(SIMULATED),
        CCOTGW(2, 2, n_support=6, kernel_rank=4).fit(SIMULATED),
        *(kind(2, 2, random_state=0).fit(np.abs(SIMULATED)) for kind in rivals),
        BlockRecommender(random_state=0).fit(TASTE, user_names=[f"u{n}" for n in range(24)]),
    ]


def places(tree):
    """Return every value of a JSON tree, as its holder and its key there."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places(tree[key])


def chosen(tree, chance):
    """Return a place, of all or on a random way down: long lists do not take all the attention."""
    if chance.random() < 0.7:
        return chance.choice(list(places(tree)))
    holder, key = tree, "values"
    while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.8:
        holder = holder[key]
        key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    return holder, key


def change_tree(tree, chance):
    holder, key = chosen(tree, chance)
    kind = chance.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        other, where = chance.choice(list(places(tree)))
        holder[key] = deepcopy(other[where])
    elif kind == 2 and isinstance(holder[key], list) and holder[key]:
        holder[key] = holder[key] * chance.choice([2, 50])
    else:
        alike = [value for value in VALUES if type(value) is type(holder[key])]
        # Of the same type mostly: what differs in type alone is refused at once.
        holder[key] = deepcopy(chance.choice(alike if alike and kind > 3 else VALUES))


def change_array(content, chance):
    array = np.load(io.BytesIO(content))
    flat = array.reshape(-1)
    kind = chance.randrange(8)
    if kind == 0:
        array = array[:-1] if array.ndim else array.reshape(1)
    elif kind == 1:
        array = array[..., None] if chance.random() < 0.5 else array.T
    elif kind == 2:
        array = np.concatenate([array] * chance.choice([2, 300])) if array.ndim else array
    elif kind == 3:
        array = array.astype(chance.choice(["i1", "f4", "U3", "?", "u8"]))
    elif kind == 4:
        array = np.empty((0, *array.shape[1:]), array.dtype)
    elif flat.size and array.dtype.kind in "iuf":
        numbers = [-1, 0, 7000, 2**31 - 1, 2**62, -(2**63)]
        if array.dtype.kind == "f":
            numbers += [np.nan, np.inf, -np.inf, 1e308, 1e-320]
        flat = flat.copy()
        with np.errstate(all="ignore"):
            new = np.array(chance.choice(numbers), float).astype(array.dtype)
        flat[slice(None) if kind == 5 else chance.randrange(flat.size)] = new
        array = flat.reshape(array.shape)
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def packed(tree, members):
    """A model file of these values and arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as stored:
        for name, member in (members | {"model.json": json.dumps(tree).encode()}).items():
            stored.writestr(name, member)
    return buffer.getvalue()


def crafted(content, chance):
    """Return a model file in which one to three fields are others."""
    with zipfile.ZipFile(io.BytesIO(content)) as stored:
        members = {name: stored.read(name) for name in stored.namelist()}
    tree = json.loads(members["model.json"])
    arrays = [name for name in members if name.endswith(".npy")]
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        if chance.random() < 0.5:
            change_tree(tree, chance)
        elif arrays:
            name = chance.choice(arrays)
            changed = np.load(io.BytesIO(members[name]))
            if changed.dtype == np.uint8 and changed.ndim == 1 and chance.random() < 0.8:
                buffer = io.BytesIO()  # a recommender holds the file of its co-clustering
                np.save(buffer, np.frombuffer(crafted(changed.tobytes(), chance), np.uint8))
                members[name] = buffer.getvalue()
            else:
                members[name] = change_array(members[name], chance)
    return packed(tree, members)


@dataclass
class Seen:
    """What came of a model."""

    refused: bool
    failures: list[str]
    seconds: float
    peak: int


def tried(path: Path, matrix) -> Seen:
    """Load a model and use all of it; a ValueError says in words what is wrong."""
    load = load_recommender if matrix is TASTE else load_model
    failures, model = [], None
    began = time.process_time()
    tracemalloc.start()
    try:
        model = load(path)
    except ModelFileError:
        pass
    except Exception as error:  # whatever it is, it should have been one of ours
        failures.append(f"load: {error!r}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    seconds = time.process_time() - began
    for use in () if model is None else uses(model, matrix, path):
        try:
            use()
        except ValueError:
            pass
        except Exception as error:  # as above
            failures.append(f"use: {error!r}")
    return Seen(model is None, failures, seconds, peak)


def uses(model, matrix, path):
    if matrix is TASTE:
        yield lambda: model.recommend(0)
        yield lambda: model.explain(1, 2)
        yield lambda: model.recommend(model.new_user([0], [5]), 3)
        return
    numbers = np.asarray(matrix if matrix is SIMULATED else matrix[["length", "eggs"]], float)
    for name in ("predict", "predict_proba", "predict_confidence", "transform", "score"):
        if hasattr(model, name):
            yield partial(getattr(model, name), matrix)
    if hasattr(model, "predict_columns"):
        yield lambda: model.predict_columns(numbers.T)
    if hasattr(model, "cut"):
        yield lambda: model.cut(2, 2)
        yield lambda: str(model.preparation_)
    yield lambda: str(model.summary())
    yield lambda: (model.rows_, model.columns_, model.labels_)
    yield lambda: model.to_frame()
    yield lambda: model.to_frame("columns")
    yield model.describe_clusters
    yield model._repr_html_
    yield lambda: write_report(path.with_suffix(".html"), model)
    if matrix is SIMULATED:
        yield lambda: write_report(path.with_suffix(".html"), model, matrix=matrix)
    yield lambda: model.save(path.with_suffix(".again"))


def attack(folder, n_models, seed, few=False):
    """Craft models of every kind in turn; return what came of each."""
    chance, found = random.Random(seed), []
    sources = [(model.save(folder / f"{n}.ccot").read_bytes(), model)
               for n, model in enumerate(fitted(few))]  # fmt: skip
    for number in range(n_models):
        content, model = sources[number % len(sources)]
        matrix = TASTE if isinstance(model, BlockRecommender) else SIMULATED
        if hasattr(getattr(model, "preparation_", None), "names"):
            matrix = TABLE
        path = folder / "crafted.ccot"
        path.write_bytes(crafted(content, chance))
        seen = tried(path, matrix)
        kept = folder / f"failed-{number}.ccot"
        if seen.failures:
            path.rename(kept)
        found.append((number, type(model).__name__, seen))
    return found


def check(found):
    failed = [f"{number} {name} {seen.failures}" for number, name, seen in found if seen.failures]
    assert not failed, "\n".join(failed)
    assert max(seen.peak for _, _, seen in found) < 64 << 20
    assert max(seen.seconds for _, _, seen in found) < 5
    # An attack that is always refused at the door shows nothing of what is behind it.
    assert any(not seen.refused for _, _, seen in found)


# Crafted numbers may overflow on the way: only errors are of interest.
@pytest.mark.filterwarnings("ignore")
def test_crafted_models_are_refused_or_of_use(tmp_path):
    check(attack(tmp_path, 16, 0, few=True))


def changed(content, change):
    """Return a model file whose fitted attributes are changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as stored:
        members = {name: stored.read(name) for name in stored.namelist()}
    tree = json.loads(members["model.json"])
    given = dict(map(tuple, tree["values"]["dict"]))
    attributes = dict(map(tuple, given["fitted"]["dict"]))
    change(attributes, members)
    given["fitted"]["dict"] = [list(pair) for pair in attributes.items()]
    return packed(tree, members)


def finest(attributes, members):
    """Leave one column out of the labels of the finest clusters."""
    labels = attributes["_coclustering"]["fields"]["finest"]["fields"]["labels"]["tuple"][1]
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(15, np.int64))
    members[f"arrays/{labels['array']}.npy"] = buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda a, _: a.update(row_jumps_=0.5), "row_jumps_ is of a wrong"),
        (lambda a, _: a.update(row_jump_strength_={"strings": ["a"]}), "row_jump_strength_ is of"),
        (lambda a, _: a.update(_kept_portraits={"tuple": []}), "_kept_portraits is of a wrong"),
        (lambda a, _: a.update(_to_describe=a["block_means_"]), "_to_describe is of a wrong"),
        (lambda a, _: a.update(row_merge_costs_=0.5), "row_merge_costs_ is of a wrong"),
        (lambda a, _: a.update(_file_options={"dict": [[2**61 - 1, 0]]}), "value of unknown kind"),
        (finest, "labels is of a wrong"),
    ],
)
def test_parts_of_descriptions_and_confidences_are_checked(tmp_path, change, told):
    path = TransportCoclustering(2, 2, random_state=0).fit(SIMULATED).save(tmp_path / "m.ccot")
    path.write_bytes(changed(path.read_bytes(), change))
    with pytest.raises(ModelFileError, match=told):
        load_model(path)


@pytest.mark.parametrize(("name", "value"), [("scale", 0.0), ("location", 10**30)])
def test_numbers_of_prepared_columns_are_checked(tmp_path, name, value):
    def change(attributes, _):
        prepared = attributes["_coclustering"]["fields"]["row"]["fields"]["placement"]["fields"]
        prepared["preparation"]["fields"]["columns"]["tuple"][0]["fields"][name] = value

    path = TransportCoclustering(2, 2, random_state=0).fit(TABLE).save(tmp_path / "m.ccot")
    path.write_bytes(changed(path.read_bytes(), change))
    with pytest.raises(ModelFileError, match=name):
        load_model(path)


def test_attributes_that_a_file_lacks_follow_from_the_coclustering(tmp_path):
    model = CCOT(2, 2, n_samplings=4, random_state=0).fit(SIMULATED)
    path = model.save(tmp_path / "m.ccot")
    path.write_bytes(changed(path.read_bytes(), lambda a, _: a.pop("row_jump_strength_")))
    again = load_model(path)
    assert np.array_equal(again.row_jump_strength_, model.row_jump_strength_)
    write_report(tmp_path / "m.html", again)


def test_attributes_that_no_fit_sets_are_refused_when_saved(tmp_path):
    model = CCOT(2, 2, n_samplings=4, random_state=0).fit(SIMULATED)
    model.note_ = "mine"
    with pytest.raises(
        ModelFileError, match="note_ cannot be saved, because it was not set by fit"
    ):
        model.save(tmp_path / "m.ccot")


@pytest.mark.slow
# As above.
@pytest.mark.filterwarnings("ignore")
def test_many_crafted_models_are_refused_or_of_use(tmp_path):
    check(attack(tmp_path, 600, 1))
