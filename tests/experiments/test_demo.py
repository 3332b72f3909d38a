"""The demo, end to end: what it prints, what it writes, where its page leads."""

import re

from ccot.experiments.demo import main


def test_demo(tmp_path, capsys):
    # One test, so that parallel workers do not each run the whole demo.
    out = tmp_path / "made" / "on the way"
    assert main(["--out", str(out)]) == 0
    check_findings(capsys.readouterr().out, str(out / "index.html"))
    check_page(out)


def check_findings(printed, page):
    assert printed.count("600 rows in 3 clusters, 300 columns in 3 clusters") == 3
    assert printed.count("co-clustering error against the truth: 0.000") == 2
    assert "50 versicolor, 50 virginica; R1: 50 setosa" in printed
    assert printed.count("178 rows in 1 cluster,") == 1
    assert "(CCOT: 1 x 1 blocks" in printed
    assert "the sorted row scalings are smooth: no step is significant" in printed
    assert page in printed


def check_page(out):
    page = (out / "index.html").read_text(encoding="utf-8")
    linked = re.findall(r'<a href="([^"]+)"', page)
    assert linked == ["d2.html", "d2_noisy.html", "iris.html", "wine.html"]
    assert sorted([*linked, "index.html"]) == sorted(path.name for path in out.iterdir())
    assert not re.search(r"https?://|url\(|<script|<link", page)
    for name in linked:
        assert 'id="content"' in (out / name).read_text(encoding="utf-8")
