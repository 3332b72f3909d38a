"""What readers add: facts that were not used for fitting, names of their own, and notebooks."""

import html
import json

import numpy as np
import pandas as pd
import pytest

from ccot.report.content import MAX_CATEGORIES, pack_annotations, read_cluster_names
from tests.report.models import crisp
from tests.report.unpack import unpack_array


def test_words_become_codes_and_gaps_the_last_one():
    frame = pd.DataFrame({"kind": ["b", None, "a", "b"], "size": [1, 2, np.nan, 1]})
    kind, size = pack_annotations(frame, "row", 4)
    assert (kind["name"], kind["categories"]) == ("kind", ["a", "b"])
    assert unpack_array(kind["codes"]).tolist() == [1, 2, 0, 1]
    assert size["categories"] == ["1.0", "2.0"]


def test_many_different_numbers_stay_numbers():
    (packed,) = pack_annotations({"age": [*range(99), None]}, "row", 100)
    values = unpack_array(packed["values"])
    assert values[98] == 98
    assert np.isnan(values[99])


def test_what_cannot_be_shown_is_refused():
    words = [f"w{i}" for i in range(MAX_CATEGORIES + 1)]
    with pytest.raises(ValueError, match="'word' has 41 different words: at most 40"):
        pack_annotations({"word": words}, "column", len(words))
    with pytest.raises(ValueError, match="'word' has 41 values for 3 rows"):
        pack_annotations({"word": words}, "row", 3)


def test_names_of_clusters(tmp_path):
    wanted = {"row": {"0": "a", "2": "b"}, "column": {}, "view": None}
    assert read_cluster_names({"row": {0: "a", 2: "b"}}) == wanted
    assert read_cluster_names({"column": ["x", "y"]})["column"] == {"0": "x", "1": "y"}
    path = tmp_path / "names.json"
    path.write_text(json.dumps({**wanted, "view": {"model": 0}}))
    assert read_cluster_names(path) == {**wanted, "view": {"model": 0}}
    path.write_text("{")
    with pytest.raises(ValueError, match=r"names.json is not a JSON file of cluster names"):
        read_cluster_names(path)
    path.write_text("[]")
    with pytest.raises(ValueError, match="holds no cluster names"):
        read_cluster_names(path)


def test_notebooks_show_blocks_and_the_report():
    data, model = crisp()
    frame = pd.DataFrame(data, columns=[f"<i>{j}</i>" for j in range(45)])
    model.fit(frame)
    shown = model._repr_html_()
    assert "60 rows in 2 clusters" in shown
    assert shown.count("<rect") == 6
    assert "<i>" not in shown.split("<pre>")[1]
    page = model.show(data, title="Blocks", height=500)._repr_html_()
    assert 'height="500"' in page
    inside = html.unescape(page.split('srcdoc="')[1].split('" width=')[0])
    assert inside.startswith("<!DOCTYPE html>")
    assert "<title>Blocks</title>" in inside
