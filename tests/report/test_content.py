"""The page's values: from any estimator, fit for JSON, and honest about doubts."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from ccot import CCOT, CCOTGW, TransportCoclustering
from ccot.baselines import TwoSidedKMeans
from ccot.datasets import load_simulated
from ccot.report import write_report
from ccot.report.content import _joined_steps, compare_models, describe_model
from ccot.report.verdict import decisions, warnings_of
from tests.report.models import crisp, noisy
from tests.report.unpack import unpack_array


def cut_of(hierarchy, number):
    """The labels that partition.js makes of a hierarchy."""
    names = np.arange(hierarchy["n_finest"])
    for first, second in hierarchy["merges"][: hierarchy["n_finest"] - number]:
        names[names == second] = first
    coarse = np.unique(names, return_inverse=True)[1]
    return coarse[unpack_array(hierarchy["finest"])]


def test_steps():
    _, model = crisp()
    content = describe_model("CCOT", model)
    json.dumps(content, allow_nan=False)
    side = content["sides"]["column"]
    np.testing.assert_array_equal(unpack_array(side["labels"]), model.column_labels_)
    assert side["n_clusters"] == 3
    assert side["scaling"]["jumps"] == model.column_jumps_.tolist()
    assert side["costs"] is None
    np.testing.assert_array_equal(cut_of(side["hierarchy"], 3), model.column_labels_)
    weakest = int(np.argmin(model.column_jump_strength_))
    joined = model.column_labels_ - (model.column_labels_ > weakest)
    np.testing.assert_array_equal(cut_of(side["hierarchy"], 2), joined)
    assert content["warnings"] == []
    assert content["decisions"][1].startswith(
        "3 column clusters: the sorted column scalings have 2"
    )


def test_blocks():
    _, model = noisy()
    content = describe_model("blocks", model)
    json.dumps(content, allow_nan=False)
    for axis, side in enumerate(("row", "column")):
        hierarchy = content["sides"][side]["hierarchy"]
        for number in (1, 2, hierarchy["n_finest"]):
            numbers = (number, 1) if axis == 0 else (1, number)
            expected = getattr(model.cut(*numbers), f"{side}_labels")
            np.testing.assert_array_equal(cut_of(hierarchy, number), expected)
        assert hierarchy["kept"][-1] == pytest.approx(1.0)
        assert len(hierarchy["kept"]) == hierarchy["n_finest"]
        assert content["sides"][side]["scaling"] is None
    assert content["candidates"][0]["n_row_clusters"] == model.n_row_clusters_


def test_every_branch_of_a_tree_says_how_well_it_comes_back():
    data, _ = noisy()
    model = TransportCoclustering(criterion="reproducibility", n_init=2, random_state=0).fit(data)
    sides = describe_model("blocks", model)["sides"]
    for axis, side in enumerate(("row", "column")):
        told, tree = (sides[side][key] for key in ("halves", "hierarchy"))
        assert len(told["nodes"]) == 2 * model.hierarchy_.shape[axis] - 1
        # Fitted clusters are found again; the finest ones are cut in another place by every half.
        assert max(told["nodes"]) > 0.8 > max(told["nodes"][: tree["n_finest"]])


def test_rivals_have_no_confidence():
    data, _ = crisp()
    content = describe_model("rival", TwoSidedKMeans(2, 3, n_init=1, random_state=0).fit(data))
    json.dumps(content, allow_nan=False)
    assert content["sides"]["row"]["confidence"] is None
    assert content["sides"]["row"]["hierarchy"] is None
    assert content["decisions"][0] == "2 row clusters: the number was given."


def test_cross_validated():
    data, _ = crisp()
    model = CCOTGW(reg="cv", n_support=10, exact_refinement=False).fit(data)
    content = describe_model("GW", model)
    json.dumps(content, allow_nan=False)
    assert content["path"]["best"] == model.reg_
    assert any("cross-validation" in line for line in content["decisions"])


def test_kernels_have_no_means():
    model = CCOTGW(exact_refinement=False).fit_kernels(np.eye(8) + 1, np.eye(6) + 1)
    assert describe_model("GW", model)["means"] is None


def test_smooth_curves_are_named():
    smooth = np.random.default_rng(0).normal(size=(80, 40))
    found = describe_model("CCOT", CCOT(n_samplings=8, random_state=0).fit(smooth))["warnings"]
    assert "The sorted row scalings are smooth: no jump is significant" in found[0]
    forced = CCOT(3, 2, n_samplings=8, random_state=0).fit(smooth)
    found = describe_model("CCOT", forced)["warnings"]
    assert any("of 2 row jumps are not significant" in line for line in found)
    assert any("1 of 1 column jump is not significant" in line for line in found)


def test_nothing_is_named_too():
    noise = np.random.default_rng(0).normal(size=(60, 40))
    model = TransportCoclustering(n_init=2, random_state=0).fit(noise)
    assert "No division into blocks" in describe_model("blocks", model)["warnings"][-1]


def test_doubtful_members_are_counted():
    data = load_simulated("D2", random_state=0, overlap="calibrated").data[:150, :60]
    model = TransportCoclustering(3, 3, n_init=1, random_state=0).fit(data)
    doubtful = int((model.row_confidence_ < 0.5).sum())
    assert doubtful > 8
    found = describe_model("blocks", model)["warnings"]
    assert any(f"confidence of {doubtful} rows of 150 is below" in line for line in found)
    model.row_labels_ = np.where(model.row_confidence_ < 0.5, -1, model.row_labels_)
    assert not any(" rows of " in line for line in warnings_of(model))


def test_halves_are_named_where_they_decided():
    data = load_simulated("D2", random_state=0).data[:80, :60]
    model = TransportCoclustering(criterion="reproducibility", n_init=1, random_state=0).fit(data)
    again = "cluster(s)?: these clusters are found again with half of the data"
    assert all(re.search(again, line) for line in decisions(model)[:2])
    model.reproducibility_ = replace(model.reproducibility_, column=None)
    assert [bool(re.search(again, line)) for line in decisions(model)[:2]] == [True, False]


def test_steps_join_across_the_weakest_jump():
    assert _joined_steps(np.array([5.0, 1.0, 3.0])) == [[1, 2], [1, 3], [0, 1]]


def test_agreement():
    data, model = crisp()
    rival = TwoSidedKMeans(1, 3, n_init=3, random_state=0).fit(data)
    agreement = compare_models({"a": model, "b": rival})
    assert agreement is not None
    assert agreement["row"] == [[1.0, 0.0], [0.0, 1.0]]
    assert agreement["column"][0][1] == pytest.approx(1.0)
    assert compare_models({"a": model}) is None


def test_a_table_with_words_has_a_picture_and_cards(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    kind = np.arange(80) % 2
    frame = pd.DataFrame({
        "size": 5 * kind + rng.normal(size=80),
        "weight": 100 * (3 * kind + rng.normal(size=80)),
        "colour": np.where(rng.uniform(size=80) < 0.9, np.array(["red", "blue"])[kind], None),
    })  # fmt: skip
    model = TransportCoclustering(2, random_state=0).fit(frame)
    page = write_report(tmp_path / "table.html", model, matrix=frame).read_text(encoding="utf-8")
    content = json.loads(re.search(r'id="content"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    assert content["matrix"] is not None
    assert content["levels"]
    titles = {
        trait[0]
        for portrait in content["models"][0]["sides"]["row"]["portraits"]
        for trait in portrait["traits"]
    }
    assert {"size", "weight", "colour = red"} <= titles


def test_columns_left_out_of_a_table_are_not_shown(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) + 4 * rng.normal(size=(3, 5))[np.arange(60) % 3]
    X = np.column_stack([X * 10.0 ** np.arange(5), np.ones(60)])
    model = TransportCoclustering(random_state=0).fit(X)
    assert model.column_labels_[-1] == -1
    side = describe_model("table", model)["sides"]["column"]
    np.testing.assert_array_equal(unpack_array(side["labels"]), model.column_labels_[:5])
    assert write_report(tmp_path / "table.html", model, matrix=X).stat().st_size > 0
