"""A first look at the library: ``python -m ccot.demo --out DIR``.

Co-clusters a simulated matrix whose blocks are known, crisp and noisy, and two real ones that come
with scikit-learn, by the estimators that suit them and by one that does not. Prints what was found
and how sure it is, and writes the figures and a page that shows them.
"""

from __future__ import annotations

import argparse
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from ccot.datasets import load_simulated
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.estimators.transport import TransportCoclustering
from ccot.metrics import coclustering_error
from ccot.plotting import (
    new_figure,
    plot_blocks,
    plot_confidence,
    plot_merge_costs,
    plot_reg_path,
    plot_scalings,
)

Estimator = CCOT | CCOTGW | TransportCoclustering


@dataclass(frozen=True)
class Picture:
    """A file in the output folder and what it shows."""

    file: str
    caption: str


@dataclass(frozen=True)
class Section:
    """One co-clustered matrix: what it is, what was found, what it looks like."""

    title: str
    intro: str
    findings: str
    pictures: tuple[Picture, ...]


# The matrices ---------------------------------------------------------------------------------


def simulated(algorithm: str, out: Path, seed: int) -> Section:
    """Co-cluster the simulated set D2, whose blocks are known."""
    truth = load_simulated("D2", random_state=seed)
    model = CCOT(random_state=seed) if algorithm == "CCOT" else CCOTGW()
    model.fit(truth.data)
    error = coclustering_error(
        truth.row_labels, truth.column_labels, model.row_labels_, model.column_labels_
    )
    how = {
        "CCOT": "Squares are drawn from the matrix, transport between their rows and columns is "
        "solved, and the draws vote.",
        "CCOTGW": "Similarities of rows and of columns are aligned with a common barycentre; "
        "nothing is drawn.",
    }[algorithm]
    return Section(
        title=f"Simulated set D2 by {algorithm}",
        intro=f"600 x 300 entries in 3 x 3 blocks of unequal size, shuffled. {how} The number of "
        "blocks is not given.",
        findings=f"{_found(model)}\nco-clustering error against the truth: {error:.3f}",
        pictures=(
            _blocks(model, truth.data, out, f"d2_{algorithm.lower()}_blocks.png"),
            _scalings(model, out, f"d2_{algorithm.lower()}_scalings.png"),
            *([_confidence(model, out, "d2_ccot_confidence.png")] if algorithm == "CCOT" else []),
        ),
    )


def noisy(out: Path, seed: int) -> Section:
    """Co-cluster the same set at a noise that hides its blocks from the eye, and from CCOT."""
    truth = load_simulated("D2", random_state=seed, overlap="calibrated")
    model = TransportCoclustering(random_state=seed).fit(truth.data)
    steps = CCOT(random_state=seed).fit(truth.data)
    errors = [
        coclustering_error(truth.row_labels, truth.column_labels, m.row_labels_, m.column_labels_)
        for m in (model, steps)
    ]
    return Section(
        title="Noisy D2 by TransportCoclustering",
        intro=f"The same blocks under noise of standard deviation {truth.sigma:g}, more than any "
        "two block means differ. Rows and columns are transported onto a table of blocks; merging "
        "clusters tells how many there are. Nothing is given.",
        findings="\n".join(
            [
                _found(model),
                f"co-clustering error in noise: {errors[0]:.3f} (CCOT: "
                f"{steps.n_row_clusters_} x {steps.n_column_clusters_} blocks, {errors[1]:.3f})",
            ]
        ),
        pictures=(
            _blocks(model, truth.data, out, "d2_noisy_blocks.png"),
            _merge_costs(model, out, "d2_noisy_merge_costs.png"),
            _confidence(model, out, "d2_noisy_confidence.png"),
        ),
    )


def iris(out: Path, seed: int) -> Section:
    """Co-cluster the logarithms of Anderson's iris measurements."""
    data = load_iris()
    shuffled = np.random.default_rng(seed).permutation(len(data.data))
    matrix, species = np.log(data.data)[shuffled], data.target[shuffled]
    model = CCOTGW(
        reg="cv", n_support=50, exact_refinement=False, max_iter=300, random_state=seed
    ).fit(matrix)
    return Section(
        title="Iris flowers by CCOTGW",
        intro="150 flowers of three species, four lengths each, in logarithms; the species are "
        'not shown to the algorithm. reg="cv" takes the regularisation whose partition '
        "is best reproduced by halves of the data.",
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
        pictures=(
            _blocks(model, matrix, out, "iris_blocks.png"),
            _scalings(model, out, "iris_scalings.png"),
            _reg_path(model, out, "iris_reg_path.png"),
        ),
    )


def wine(out: Path, seed: int) -> Section:
    """Co-cluster a matrix that has clusters but no steps."""
    data = load_wine()
    matrix = scale(data.data)
    model = CCOT(random_state=seed).fit(matrix)
    rival = KMeans(3, n_init=10, random_state=seed).fit_predict(matrix)
    return Section(
        title="Wines by CCOT: no blocks",
        intro="178 wines of three growers, 13 standardised measurements.",
        findings="\n".join(
            [
                _found(model),
                "There are three kinds of wine here, and K-means, told that number, finds them: "
                f"adjusted Rand index {adjusted_rand_score(data.target, rival):.2f}. CCOT sees "
                "each wine as one number, mostly the size of its deviations from the mean, and "
                "sorted these numbers rise smoothly. Rather than cut a smooth curve it reports "
                "one block.",
            ]
        ),
        pictures=(_scalings(model, out, "wine_scalings.png"),),
    )


def wine_blocks(out: Path, seed: int) -> Section:
    """Co-cluster the wines again, by whole rows."""
    data = load_wine()
    matrix = scale(data.data)
    model = TransportCoclustering(random_state=seed).fit(matrix)
    told = TransportCoclustering(3, random_state=seed).fit(matrix)
    indices = [adjusted_rand_score(data.target, m.row_labels_) for m in (model, told)]
    columns = "; ".join(
        f"C{k}: "
        + ", ".join(data.feature_names[j] for j in np.flatnonzero(model.column_labels_ == k))
        for k in range(model.n_column_clusters_)
    )
    return Section(
        title="Wines by TransportCoclustering",
        intro="The same 178 wines. Whole rows are compared with blocks, so that clusters without "
        "steps show.",
        findings="\n".join(
            [
                _found(model),
                "growers in each row cluster: " + _crossed(model, data.target, data.target_names),
                f"measurements in each column cluster: {columns}",
                f"adjusted Rand index with the growers: {indices[0]:.2f}; told that there are "
                f"three: {indices[1]:.2f}, and K-means, told so too, is better still. Most "
                "clusters hold one grower, but some growers fill more than one. A number found is "
                "a suggestion: look at the runners-up.",
            ]
        ),
        pictures=(
            _blocks(model, matrix, out, "wine_blocks.png"),
            _merge_costs(model, out, "wine_merge_costs.png"),
        ),
    )


DEMOS: tuple[Callable[[Path, int], Section], ...] = (
    lambda out, seed: simulated("CCOT", out, seed),
    lambda out, seed: simulated("CCOTGW", out, seed),
    noisy,
    iris,
    wine,
    wine_blocks,
)


# In words -------------------------------------------------------------------------------------


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


# In pictures ----------------------------------------------------------------------------------


def _blocks(model: Estimator, matrix: Any, out: Path, file: str) -> Picture:
    figure, (left, right) = new_figure(1, 2, size=(10, 4.6))
    plot_blocks(model, matrix, before=True, ax=left, colorbar=False)
    plot_blocks(model, matrix, ax=right)
    figure.savefig(out / file, dpi=110)
    return Picture(file, "The matrix as given, and with rows and columns ordered by cluster.")


def _scalings(model: CCOT | CCOTGW, out: Path, file: str) -> Picture:
    figure, axes = new_figure(1, 2, size=(10, 3.6))
    plot_scalings(model, axes)
    figure.savefig(out / file, dpi=110)
    jumps = len(model.row_jumps_) + len(model.column_jumps_)
    lines = "A dashed line is a jump, with the bound on the probability that smooth data show one."
    return Picture(file, f"Sorted log scalings of rows and of columns. {lines if jumps else ''}")


def _confidence(model: Estimator, out: Path, file: str) -> Picture:
    figure, axes = new_figure(1, 2, size=(10, 2.8))
    plot_confidence(model, axes)
    figure.savefig(out / file, dpi=110)
    if isinstance(model, TransportCoclustering):
        return Picture(file, "How far each row's and each column's own cluster exceeds chance.")
    return Picture(file, "Share of draws that agree with each row's and each column's cluster.")


def _merge_costs(model: TransportCoclustering, out: Path, file: str) -> Picture:
    figure, axes = new_figure(1, 2, size=(10, 3.6))
    plot_merge_costs(model, axes)
    figure.savefig(out / file, dpi=110)
    return Picture(
        file,
        "Information lost by each merge of two clusters; merges to the left of the dashed line are "
        "refused.",
    )


def _reg_path(model: Estimator, out: Path, file: str) -> Picture:
    figure, ax = new_figure(size=(5.2, 3.4))
    plot_reg_path(model, ax)
    figure.savefig(out / file, dpi=110)
    return Picture(file, "How well halves of the data reproduce each other's partitions.")


# On a page ------------------------------------------------------------------------------------

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ccot demo</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem; }}
h1, h2 {{ line-height: 1.2; }}
section {{ margin-top: 3rem; }}
pre {{ font-size: 14px; white-space: pre-wrap; padding: 1rem; border-radius: .5rem;
      background: color-mix(in srgb, currentColor 7%, transparent); }}
figure {{ margin: 1.5rem 0; }}
img {{ max-width: 100%; height: auto; border-radius: .5rem; background: white; }}
figcaption {{ font-size: 14px; opacity: .8; }}
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
    return _PAGE.format(sections="\n".join(_section(section) for section in sections))


def _section(section: Section) -> str:
    figures = "\n".join(
        f'<figure>\n<img src="{picture.file}" alt="{html.escape(picture.caption)}">\n'
        f"<figcaption>{html.escape(picture.caption)}</figcaption>\n</figure>"
        for picture in section.pictures
    )
    return (
        f"<section>\n<h2>{html.escape(section.title)}</h2>\n<p>{html.escape(section.intro)}</p>\n"
        f"<pre>{html.escape(section.findings)}</pre>\n{figures}\n</section>"
    )


def run_demo(out: Path, seed: int = 0) -> Path:
    """Run every part, print what it finds, write figures and the page that shows them.

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
        section = demo(out, seed)
        print(f"{section.title}\n{'=' * len(section.title)}\n{section.intro}\n", flush=True)
        print(f"{section.findings}\n", flush=True)
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
    parser = argparse.ArgumentParser(prog="python -m ccot.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for files")
    parser.add_argument("--seed", type=int, default=0, help="seed of matrix and draws")
    arguments = parser.parse_args(argv)
    page = run_demo(arguments.out, arguments.seed)
    pictures = sorted(path.name for path in arguments.out.glob("*.png"))
    print(f"Figures in {arguments.out.resolve()}: {', '.join(pictures)}")
    print(f"Open {page.resolve()} in a browser to see them.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
