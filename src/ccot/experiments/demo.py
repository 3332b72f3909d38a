"""A first look at the library, ``ccot demo``: what is found in matrices that ship with it."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale
from sklearn.utils import Bunch

from ccot import datasets
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.estimators.described import picture_of_blocks
from ccot.estimators.transport import TransportCoclustering
from ccot.experiments.tables import TEXTS, read_asset
from ccot.metrics import coclustering_error
from ccot.plotting._shared import SIDES, sizes_of
from ccot.report import write_report

Estimator = CCOT | CCOTGW | TransportCoclustering
_SHIPPED = "zoo", "votes", "penguins", "southern_women", "titles"


@dataclass(frozen=True)
class Section:
    """One co-clustered matrix: its name in TEXTS, what was found, and what its report is of."""

    name: str
    findings: str
    models: Mapping[str, Estimator]
    matrix: np.ndarray
    facts: Mapping[str, Any] = field(default_factory=dict)


def _shipped(seed: int, name: str) -> Section:
    """Co-cluster a shipped matrix, and compare with what is known of its rows."""
    data, known = getattr(datasets, f"load_{name}")(), TEXTS["demo"][name].get("known")
    model = TransportCoclustering(random_state=seed).fit(data.data)
    findings = [_describe(model, data.column_names)]
    if known:
        findings += _compare(model, data.data, known, data.annotations[known])
    facts = {key: data[key] for key in ("row_names", "column_names", "annotations")}
    return Section(name, "\n".join(findings), {"TransportCoclustering": model}, data.data, facts)


def _compare(model: Estimator, matrix: np.ndarray, known: str, values: Sequence) -> list[str]:
    """Say how far the row clusters are what is known, beside K-means with the number given."""
    names, classes = np.unique(values, return_inverse=True)
    given = KMeans(len(names), n_init=10, random_state=0)
    points = matrix if np.nanmax(matrix) == 1 else scale(matrix)  # K-means takes units as they are
    labels = model.row_labels_, given.fit_predict(np.nan_to_num(points, nan=0.5))
    ours, theirs = (adjusted_rand_score(classes, side) for side in labels)
    better = "better" if theirs > ours + 0.005 else "no better"
    return [
        f"{known} in each row cluster: {_classes_by_cluster(model, classes, names.tolist())}",
        f"adjusted Rand index with the {known}: {ours:.2f}; K-means with {len(names)} "
        f"clusters is {better}: {theirs:.2f}",
    ]


def crisp(seed: int) -> Section:
    """Co-cluster the simulated set D2, whose blocks are known, by both algorithms of the paper."""
    truth = datasets.load_simulated("D2", random_state=seed)
    models = {"CCOT": CCOT(random_state=seed).fit(truth.data), "CCOTGW": CCOTGW().fit(truth.data)}
    findings = [
        f"{_describe(model)}\nco-clustering error against the truth: {_error(truth, model):.3f}"
        for model in models.values()
    ]
    return Section("d2", "\n\n".join(findings), models, truth.data)


def noisy(seed: int) -> Section:
    """Co-cluster the same set at a noise that hides its blocks from the eye, and from CCOT."""
    truth = datasets.load_simulated("D2", random_state=seed, overlap="calibrated")
    model = TransportCoclustering(random_state=seed).fit(truth.data)
    steps = CCOT(random_state=seed).fit(truth.data)
    findings = (
        f"{_describe(model)}\nco-clustering error in noise: {_error(truth, model):.3f} (CCOT: "
        f"{steps.n_row_clusters_} x {steps.n_column_clusters_} blocks, {_error(truth, steps):.3f})"
    )
    models = {"TransportCoclustering": model, "CCOT": steps}
    return Section("d2_noisy", findings, models, truth.data)


DEMOS = (*(partial(_shipped, name=name) for name in _SHIPPED), crisp, noisy)


def _error(truth: Bunch, model: Estimator) -> float:
    true = truth.row_labels, truth.column_labels
    return coclustering_error(*true, model.row_labels_, model.column_labels_)


def _describe(model: Estimator, names: Sequence[str] = ()) -> str:
    """Return the summary, block means with sizes, and the least sure row and column."""
    summary = model.summary()
    if names:
        summary = re.sub(r"\b(?:column |x)(\d+)", lambda found: names[int(found[1])], summary)
    rows, columns = np.bincount(model.row_labels_), np.bincount(model.column_labels_)
    heads = [f"C{k} ({size})" for k, size in enumerate(columns)]
    width = max(len(head) for head in heads) + 2
    lines = [summary, "block means (sizes in brackets):"]
    lines.append(" " * 12 + "".join(head.rjust(width) for head in heads))
    for k, (size, means) in enumerate(zip(rows, model.block_means_, strict=True)):
        entries = "".join(f"{mean + 0:{width}.2f}" for mean in means.round(2))
        lines.append(f"{f'R{k} ({size})':>12}{entries}")
    sure = [side.min() for side in (model.row_confidence_, model.column_confidence_)]
    return "\n".join([*lines, f"least confidence: rows {sure[0]:.2f}, columns {sure[1]:.2f}"])


def _classes_by_cluster(model: Estimator, target: np.ndarray, names: Sequence[str]) -> str:
    """Say how many members of each class every row cluster has."""
    parts = []
    for k in range(model.n_row_clusters_):
        counts = np.bincount(target[model.row_labels_ == k], minlength=len(names))
        held = [f"{n} {name}" for n, name in zip(counts, names, strict=True) if n]
        parts.append(f"R{k}: {', '.join(held)}")
    return "; ".join(parts)


def _page(sections: Sequence[Section]) -> str:
    page, part = (Template(read_asset(name)) for name in ("demo.html", "demo_section.html"))
    parts = []
    for section in sections:
        texts = {**TEXTS["demo"][section.name], "findings": section.findings}
        shown = {name: html.escape(text) for name, text in texts.items()}
        model = next(iter(section.models.values()))
        picture = picture_of_blocks(model.block_means_, *(sizes_of(model, side) for side in SIDES))
        parts.append(part.substitute(shown, name=section.name, picture=picture))
    return page.substitute(sections="".join(parts))


def run_demo(out: Path, seed: int = 0) -> Path:
    """Run every part, print what it finds, write the reports and the page that leads to them."""
    out.mkdir(parents=True, exist_ok=True)
    sections = []
    for demo in DEMOS:
        section = demo(seed)
        words = TEXTS["demo"][section.name]
        title = words["title"]
        print(f"{title}\n{'=' * len(title)}\n{words['intro']}\n", flush=True)
        given = {"matrix": section.matrix, "title": title, **section.facts}
        report = write_report(out / f"{section.name}.html", section.models, **given)
        print(f"{section.findings}\nreport: {report}\n", flush=True)
        sections.append(section)
    page = out / "index.html"
    page.write_text(_page(sections), encoding="utf-8")
    print(f"Open {page.resolve()} in a browser.")
    return page
