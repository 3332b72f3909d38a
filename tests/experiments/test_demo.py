"""The demo, end to end: what it prints, what it writes, where its page leads."""

import re

from ccot.experiments.demo import run_demo


def test_demo(tmp_path, capsys):
    # One test, so that parallel workers do not each run the whole demo.
    out = tmp_path / "made" / "on the way"
    assert run_demo(out) == out / "index.html"
    check_findings(capsys.readouterr().out, str(out / "index.html"))
    check_page(out)


def check_findings(printed, page):
    assert printed.count("600 rows in 3 clusters, 300 columns in 3 clusters") == 3
    assert printed.count("co-clustering error against the truth: 0.000") == 2
    assert "milk 100 % (+59 points)" in printed
    assert "435 rows in 2 clusters, 16 columns in 4 clusters" in printed
    # Each species in two clusters, which are nearly those of females and males.
    assert "R2: 66 Gentoo" in printed
    assert "R4: 57 Gentoo" in printed
    assert re.search(r"3402 \(-1.0 sd\), .*bill", printed)
    assert "18 rows in 2 clusters" in printed
    assert re.search(r"collaborative \d+ % .*filtering", printed)
    assert "wasserstein" in printed
    assert printed.count("K-means with") == 4
    assert "(CCOT: 1 x 1 blocks" in printed
    assert page in printed


def check_page(out):
    page = (out / "index.html").read_text(encoding="utf-8")
    linked = [name for name, _ in re.findall(r'<h2><a href="([^"]+)"(>)', page)]
    named = ("zoo", "votes", "penguins", "southern_women", "titles", "d2", "d2_noisy")
    assert linked == [f"{name}.html" for name in named]
    assert sorted([*linked, "index.html"]) == sorted(path.name for path in out.iterdir())
    assert not re.search(r"https?://|url\(|<script|<link", page)
    assert page.count("<svg ") == len(linked)
    for name in linked:
        assert 'id="content"' in (out / name).read_text(encoding="utf-8")
