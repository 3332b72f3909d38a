"""A first look at the library: ``python -m ccot.experiments.demo --out DIR``.

Co-clusters a simulated matrix whose blocks are known, crisp and noisy, and two real ones that come
with scikit-learn, by the estimators that suit them and by one that does not. Prints what was found
and how sure it is, and writes an interactive report of each matrix and a page that leads to them.
"""

from __future__ import annotations

import argparse
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale
from sklearn.utils import Bunch

from ccot.datasets import load_simulated
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.estimators.transport import TransportCoclustering
from ccot.metrics import coclustering_error
from ccot.report import write_report

Estimator = CCOT | CCOTGW | TransportCoclustering


@dataclass(frozen=True)
class Section:
    """One co-clustered matrix: what it is, what was found, and everything its report needs."""

    name: str
    title: str
    intro: str
    findings: str
    models: Mapping[str, Estimator]
    matrix: np.ndarray
    row_names: Sequence[str] | None = None
    column_names: Sequence[str] | None = None

    def write(self, out: Path) -> Path:
        """Write the report."""
        return write_report(
            out / f"{self.name}.html",
            self.models,
            matrix=self.matrix,
            row_names=self.row_names,
            column_names=self.column_names,
            title=self.title,
        )


# The matrices ---------------------------------------------------------------------------------


def crisp(seed: int) -> Section:
    """Co-cluster the simulated set D2, whose blocks are known, by both algorithms of the paper."""
    truth = load_simulated("D2", random_state=seed)
    models = {"CCOT": CCOT(random_state=seed).fit(truth.data), "CCOTGW": CCOTGW().fit(truth.data)}
    findings = [
        f"{_found(model)}\nco-clustering error against the truth: {_error(truth, model):.3f}"
        for model in models.values()
    ]
    return Section(
        name="d2",
        title="Simulated set D2",
        intro="600 x 300 entries in 3 x 3 blocks of unequal size, shuffled; the number of blocks "
        "is not given. CCOT draws squares from the matrix, solves transport between their rows "
        "and columns, and lets the draws vote. CCOTGW aligns similarities of rows and of columns "
        "with a common barycentre and draws nothing.",
        findings="\n\n".join(findings),
        models=models,
        matrix=truth.data,
    )


def noisy(seed: int) -> Section:
    """Co-cluster the same set at a noise that hides its blocks from the eye, and from CCOT."""
    truth = load_simulated("D2", random_state=seed, overlap="calibrated")
    model = TransportCoclustering(random_state=seed).fit(truth.data)
    steps = CCOT(random_state=seed).fit(truth.data)
    return Section(
        name="d2_noisy",
        title="Noisy D2",
        intro=f"The same blocks under noise of standard deviation {truth.sigma:g}, more than any "
        "two block means differ. TransportCoclustering transports rows and columns onto a table of "
        "blocks; merging clusters tells how many there are. Nothing is given.",
        findings=f"{_found(model)}\n"
        f"co-clustering error in noise: {_error(truth, model):.3f} (CCOT: "
        f"{steps.n_row_clusters_} x {steps.n_column_clusters_} blocks, {_error(truth, steps):.3f})",
        models={"TransportCoclustering": model, "CCOT": steps},
        matrix=truth.data,
    )


def iris(seed: int) -> Section:
    """Co-cluster the logarithms of Anderson's iris measurements."""
    data = load_iris()
    shuffled = np.random.default_rng(seed).permutation(len(data.data))
    matrix, species = np.log(data.data)[shuffled], data.target[shuffled]
    model = CCOTGW(
        reg="cv", n_support=50, exact_refinement=False, max_iter=300, random_state=seed
    ).fit(matrix)
    return Section(
        name="iris",
        title="Iris flowers",
        intro="150 flowers of three species, four lengths each, in logarithms; the species are "
        'not shown to CCOTGW. reg="cv" takes the regularisation whose partition is best '
        "reproduced by halves of the data.",
        findings="\n".join(
            [
                _found(model),
                f"regularisation chosen: {model.reg_:g}",
                "species in each row cluster: " + _crossed(model, species, data.target_names),
                "One species stands on a step of its own. The other two overlap, and no step "
                "parts them. Among four columns a step would have to be extreme to count as one. "
                "With standardised lengths instead of logarithms, or at the default reg=1, the "
                "species is not found: how the data are prepared matters.",
            ]
        ),
        models={"CCOTGW": model},
        matrix=matrix,
        row_names=_named(data.target_names[species], shuffled),
        column_names=data.feature_names,
    )


def wine(seed: int) -> Section:
    """Co-cluster a matrix that has clusters but no steps, by steps and by whole rows."""
    data = load_wine()
    matrix = scale(data.data)
    steps = CCOT(random_state=seed).fit(matrix)
    model = TransportCoclustering(random_state=seed).fit(matrix)
    with_three = TransportCoclustering(3, random_state=seed).fit(matrix)
    rival = KMeans(3, n_init=10, random_state=seed).fit_predict(matrix)
    unaided, given, kmeans = (
        adjusted_rand_score(data.target, labels)
        for labels in (model.row_labels_, with_three.row_labels_, rival)
    )
    return Section(
        name="wine",
        title="Wines",
        intro="178 wines of three growers, 13 standardised measurements.",
        findings="\n".join(
            [
                _found(steps),
                "CCOT sees each wine as one number, mostly the size of its deviations from the "
                "mean, and sorted these numbers rise smoothly. Rather than cut a smooth curve it "
                "reports one block. TransportCoclustering compares whole rows with blocks.",
                "",
                _found(model),
                "growers in each row cluster: " + _crossed(model, data.target, data.target_names),
                f"adjusted Rand index with the growers: {unaided:.2f}; given the number three: "
                f"{given:.2f}, and K-means, given it too: {kmeans:.2f}. Most clusters hold one "
                "grower, but some growers fill more than one. A number found is a suggestion: "
                "look at the runners-up.",
            ]
        ),
        models={"TransportCoclustering": model, "told 3": with_three, "CCOT": steps},
        matrix=matrix,
        row_names=_named(data.target_names[data.target], range(len(matrix))),
        column_names=data.feature_names,
    )


DEMOS: tuple[Callable[[int], Section], ...] = (crisp, noisy, iris, wine)


# In words -------------------------------------------------------------------------------------


def _error(truth: Bunch, model: Estimator) -> float:
    return coclustering_error(
        truth.row_labels, truth.column_labels, model.row_labels_, model.column_labels_
    )


def _named(kinds: Sequence[str], numbers: Sequence[int] | np.ndarray | range) -> list[str]:
    return [f"{kind} {number}" for kind, number in zip(kinds, numbers, strict=True)]


def _found(model: Estimator) -> str:
    """Summary, block means with sizes, and the least sure row and column."""
    rows, columns = np.bincount(model.row_labels_), np.bincount(model.column_labels_)
    heads = [f"C{k} ({size})" for k, size in enumerate(columns)]
    width = max(len(head) for head in heads) + 2
    lines = [model.summary(), "block means (sizes in brackets):"]
    lines.append(" " * 12 + "".join(f"{head:>{width}}" for head in heads))
    for k, (size, means) in enumerate(zip(rows, model.block_means_, strict=True)):
        entries = "".join(f"{mean + 0:{width}.2f}" for mean in means.round(2))
        lines.append(f"{f'R{k} ({size})':>12}{entries}")
    lines.append(
        f"least confidence: rows {model.row_confidence_.min():.2f}, "
        f"columns {model.column_confidence_.min():.2f}"
    )
    return "\n".join(lines)


def _crossed(model: Estimator, target: np.ndarray, names: Sequence[str]) -> str:
    parts = []
    for k in range(model.n_row_clusters_):
        members = target[model.row_labels_ == k]
        counts = [f"{(members == code).sum()} {name}" for code, name in enumerate(names)]
        parts.append(f"R{k}: " + ", ".join(part for part in counts if not part.startswith("0 ")))
    return "; ".join(parts)


# On a page ------------------------------------------------------------------------------------

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ccot demo</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.55 system-ui, sans-serif; max-width: 50rem; margin: 2.5rem auto;
       padding: 0 1.25rem; }}
h1, h2 {{ line-height: 1.2; letter-spacing: -.01em; }}
section {{ margin-top: 2.5rem; }}
pre {{ font-size: 13px; white-space: pre-wrap; padding: 1rem; border-radius: .5rem;
      background: color-mix(in srgb, currentColor 6%, transparent); }}
</style>
</head>
<body>
<h1>Co-clustering through optimal transport</h1>
<p>Blocks of rows and columns that <code>ccot</code> found, and how sure it is of them.</p>
{sections}
</body>
</html>
"""


def _page(sections: Sequence[Section]) -> str:
    parts = [
        f'<section>\n<h2><a href="{section.name}.html">{html.escape(section.title)}</a></h2>\n'
        f"<p>{html.escape(section.intro)}</p>\n<pre>{html.escape(section.findings)}</pre>\n"
        "</section>"
        for section in sections
    ]
    return _PAGE.format(sections="\n".join(parts))


def run_demo(out: Path, seed: int = 0) -> Path:
    """Run every part, print what it finds, write the reports and the page that leads to them.

    Parameters
    ----------
    out : pathlib.Path
        Folder for the files; made if it is not there.
    seed : int, default=0
        Seed of the simulated matrix and of the draws.

    Returns
    -------
    pathlib.Path
        The page.
    """
    out.mkdir(parents=True, exist_ok=True)
    sections = []
    for demo in DEMOS:
        section = demo(seed)
        print(f"{section.title}\n{'=' * len(section.title)}\n{section.intro}\n", flush=True)
        report = section.write(out)
        print(f"{section.findings}\nreport: {report}\n", flush=True)
        sections.append(section)
    page = out / "index.html"
    page.write_text(_page(sections), encoding="utf-8")
    return page


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo from the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        Exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m ccot.experiments.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for files")
    parser.add_argument("--seed", type=int, default=0, help="seed of matrix and draws")
    arguments = parser.parse_args(argv)
    page = run_demo(arguments.out, arguments.seed)
    print(f"Open {page.resolve()} in a browser.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
