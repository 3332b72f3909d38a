"""What the page of a fit shows beside the matrix."""

import json
import re

import numpy as np


def test_annotations_are_on_the_page_of_a_fit(ccot, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["species,who,size,weight,age"]
    for k in range(60):
        values = rng.normal(10 * (k % 2), 0.5, size=3)
        lines.append(f"{'ab'[k % 2]},name{k}," + ",".join(f"{value:.2f}" for value in values))
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    options = "--annotate", "species", "--annotate", "who", "--n-row-clusters", "2"
    told = ccot("fit", "table.csv", *options, "--out", "annotated").stderr
    assert "'who' has 60 different words" in told
    page = (tmp_path / "annotated" / "report.html").read_text(encoding="utf-8")
    found = re.search(r'id="content">(.*?)</script>', page, re.DOTALL)
    assert found
    (track,) = json.loads(found[1])["annotations"]["row"]
    assert track["name"] == "species"
    assert track["categories"] == ["a", "b"]
