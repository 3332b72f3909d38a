"""Fill the tables of the docs from stored results: ``python docs/render.py [--check]``.

A page holds a pair of comments, ``<!-- table: NAME -->`` and ``<!-- end: NAME -->``; what stands
between them is written by this program from ``benchmarks/results``. Edit nothing there by hand.
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

import automatic
import claims
import commands
import faults
import growth
import large
import layers
import mixed
import ratings
import reliability
import reproduction
import setting
import suite
import supply
import variants
from stored import load, source, table

from ccot.blocks import criteria, preparation, select, start
from ccot.experiments.published import FIGURE2C, TABLE2
from ccot.scalings.jumps import LEVEL

DOCS = Path(__file__).parent
SLOT = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)


def share(part: float) -> str:
    return f"{100 * part:.2f} %" if part < 0.1 else f"{100 * part:.0f} %"


def unique(cells: list[dict], key: str) -> list:
    return list(dict.fromkeys(cell[key] for cell in cells))


def cell_of(cells: list[dict], **where) -> dict:
    return next(cell for cell in cells if all(cell[key] == where[key] for key in where))


def detector() -> str:
    result = load("detector")
    cells, sizes = result["cells"], unique(result["cells"], "values")
    rows = []
    for method, name in (("multiscale", "multiscale"), ("authors", "authors' code")):
        for law in unique(cells, "law"):
            seen = [cell_of(cells, method=method, law=law, values=size) for size in sizes]
            shares = [share(cell["false_alarms"] / cell["samples"]) for cell in seen]
            rows.append([f"{name}: {law}", *shares])
    note = (
        f"Share of {cells[0]['samples']} sorted samples of each size with at least one jump; "
        f"`level={result['level']:g}`."
    )
    return table(["values in the sample", *map(str, sizes)], rows) + source(
        "detector", result, note
    )


def detector_summary() -> str:
    """The distribution with most false alarms, for each method and size."""
    cells = load("detector")["cells"]
    sizes = unique(cells, "values")
    rows = []
    for method, name in (("multiscale", "multiscale"), ("authors", "authors' code")):
        worst = [
            max(c["false_alarms"] / c["samples"] for c in cells
                if (c["method"], c["values"]) == (method, size))
            for size in sizes
        ]  # fmt: skip
        rows.append([f"{name}, worst of {len(unique(cells, 'law'))} distributions",
                     *map(share, worst)])  # fmt: skip
    return table(["values in the sample", *map(str, sizes)], rows)


def reach() -> str:
    """How high a jump must be, in spans of the smaller step, to be significant."""
    rows = []
    for n_values in (50, 100, 300, 1000):
        tests = 2 * (n_values - 1) * max(1, n_values.bit_length() - 2)
        heights = [(tests / LEVEL) ** (1 / (size - 1)) - 1 for size in (2, 3, 5, 10, 20)]
        rows.append([str(n_values), *(f"{height:.2g}" if height < 99 else f"{height:.0f}"
                                      for height in heights)])  # fmt: skip
    return table(["values", *(f"{size} members" for size in (2, 3, 5, 10, 20))], rows)


def nostructure() -> str:
    result = load("nostructure")
    cells = result["cells"]
    kinds = unique(cells, "kind")
    rows = []
    for method in unique(cells, "method"):
        seen = {c["kind"]: f"{c['one_by_one']} of {c['matrices']}" for c in cells
                if c["method"] == method}  # fmt: skip
        rows.append([method, *(seen.get(kind, "") for kind in kinds)])
    note = "How many matrices without blocks were reported as one row and one column cluster."
    return table(["", *kinds], rows) + source("nostructure", result, note)


def quality() -> str:
    result = load("quality")
    cells = result["cells"]
    methods = [
        name for name in ("CCOT", 'CCOT reg="cv"', "CCOTGW") if name in unique(cells, "method")
    ]
    rows = []
    for name in ("D1", "D2", "D3", "D4"):
        for method in methods:
            cell = cell_of(cells, method=method, set=name)
            numbers = (
                f"{share_of(cell, 'row_number_right')} / {share_of(cell, 'column_number_right')}"
            )
            error = cell["error_where_right"]
            rows.append(
                [
                    f"{name}, {method}",
                    str(cell["seeds"]),
                    numbers,
                    "" if error is None else f"{error:.4f}",
                    paper(method.split()[0], name),
                ]
            )
    note = (
        "Percentage of matrices with the right number of row / column clusters, and the mean "
        "co-clustering error of those with both numbers right, as in the authors' program (the "
        "paper's text averages over all matrices). The noise is that of the published parameters."
    )
    heads = ["set, method", "matrices", "numbers right (%)", "error", "paper"]
    return table(heads, rows) + source("quality", result, note, cells)


def paper(method: str, name: str) -> str:
    method = {"CCOTGW": "CCOT-GW"}.get(method, method)
    rows, columns = FIGURE2C[method][name]
    error = TABLE2[method][name]
    return f"{rows} / {columns}, {error.mean:.3f}".replace(" 0.", " .")


def share_of(cell: dict, what: str) -> str:
    return f"{100 * cell[what] / cell['seeds']:.0f}"


def noise() -> str:
    result = load("limits")
    cells = result["noise"]
    sigmas = unique(cells, "sigma")
    rows = []
    for name in unique(cells, "set"):
        for method in unique(cells, "method"):
            seen = [cell_of(cells, set=name, method=method, sigma=sigma) for sigma in sigmas]
            rows.append([f"{name}, {method}", *(f"{cell['mean_error']:.2f}" for cell in seen)])
    note = f"Mean co-clustering error over {cells[0]['seeds']} matrices at each noise."
    heads = ["sigma", *(f"{sigma:g}" for sigma in sigmas)]
    return table(heads, rows) + source("limits", result, note)


def diagonal() -> str:
    result = load("limits")
    cells = result["diagonal"]
    kinds = unique(cells, "blocks")
    rows = []
    for method in unique(cells, "method"):
        seen = [cell_of(cells, method=method, blocks=kind) for kind in kinds]
        rows.append([method, *(f"{c['both_numbers_right']} of {c['seeds']}" for c in seen)])
    note = "Block-diagonal matrices, sigma = 0.01: both numbers right."
    return table(["blocks", *kinds], rows) + source("limits", result, note)


def degree() -> str:
    result = load("degree")
    cells = result["cells"]
    settings = list(dict.fromkeys((c["loss"], c["reg"], c["exact_refinement"]) for c in cells))
    rows = []
    for loss, reg, refined in settings:
        where = {"loss": loss, "reg": reg, "exact_refinement": refined}
        seen = [cell_of(cells, set=name, **where) for name in ("D1", "D2", "D3", "D4")]
        name = f"{loss}, reg {reg:g}, {'with' if refined else 'without'} refinement"
        rows.append([name, *(f"{cell['weakest']:+.6f}" for cell in seen)])
    note = (
        f"Correlation of log scalings and mean similarities, the weakest of rows and columns of "
        f"{result['seeds']} matrices."
    )
    return table(["loss", "D1", "D2", "D3", "D4"], rows) + source("degree", result, note)


def movielens() -> str:
    result = load("movielens")
    rows = [
        [
            f"{cell['method']}, {cell['detector']}",
            f"{cell['row_clusters']} x {cell['column_clusters']}",
        ]
        for cell in result["cells"]
    ]
    return table(["method, detector", "users x movies"], rows) + source(
        "movielens", result, "MovieLens-100K."
    )


def speed() -> str:
    result = load("speed")
    rows = [
        [
            cell["comparison"],
            f"{cell['times_faster']:.1f}",
            f"{cell['seconds_ours']:.3g}",
            cell["unit"],
        ]
        for cell in result["comparisons"]
    ]
    note = (
        f"Time of POT over ours, and ours in seconds, on {result['facts']['processor']}, "
        f"{result['facts']['cores']} cores; peak memory of {result['draws']} draws "
        f"{result['peak_megabytes']:.0f} MB."
    )
    return table(["against", "times faster", "seconds", "of"], rows) + source("speed", result, note)


REAL = {
    "given": "TransportCoclustering, number given",
    "found": "TransportCoclustering, number found",
    "k_means": "K-means, number given",
    "spectral_coclustering": "SpectralCoclustering, number given",
}
KINDS = {"text": "text", "gene": "expression", "other": "votes and traits"}


def real() -> str:
    result = load("real")
    rows = []
    for cell in result["cells"]:
        sets = f"{KINDS[cell['kind']]}, {cell['sets']} sets"
        rows.append(
            [
                f"{sets}: {REAL[cell['method']]}",
                *(f"{cell[key]:.3f}" for key in ("nmi", "ari", "nmi_over_seeds")),
                f"{cell['nmi_lowest_seed']:.3f}",
                f"{cell['number_right']} of {cell['sets']}",
            ]
        )
    seeds = result["cells"][0]["seeds"]
    note = (
        f"Agreement of row clusters with classes, means over the sets, with `random_state=0`; then "
        f"the mean and the lowest of {seeds} seeds. Number right: as many row clusters as classes."
    )
    heads = ["data: method", "NMI", "ARI", f"NMI, {seeds} seeds", "lowest", "number right"]
    return table(heads, rows) + source("real", result, note, result["trials"])


def real_sets() -> str:
    result = load("real")
    first = [t for t in result["trials"] if t["seed"] == 0]
    rows = []
    for kind, name in dict.fromkeys((t["kind"], t["set"]) for t in first):
        seen = {m: cell_of(first, kind=kind, set=name, method=m) for m in REAL}
        found = seen["found"]
        rows.append(
            [
                name,
                " x ".join(map(str, found["shape"])),
                found["family"],
                str(found["classes"]),
                f"{found['row_clusters']} x {found['column_clusters']}",
                *(f"{trial['nmi']:.2f} / {trial['ari']:.2f}" for trial in seen.values()),
                f"{found['seconds']:.1f}",
            ]
        )
    note = "NMI / ARI at `random_state=0`; seconds of the fit that finds its numbers."
    heads = ["set", "shape", "family", "classes", "found", "given", "found", "K-means", "spectral",
             "seconds"]  # fmt: skip
    return table(heads, rows) + source("real", result, note, result["trials"])


ROBUST = ("found", "given", "from_truth", "k_means", "spectral_biclustering", "latent_block_model")


def robust() -> str:
    result = load("robust")
    rows = [
        [
            f"{cell['set']}, {cell['overlap']}"
            + ("" if cell["factor"] == 1 else f" x {cell['factor']:g}"),
            f"{cell['sigma']:.3g}",
            f"{cell['numbers_right']} of {cell['seeds']}",
            *(f"{cell[key]:.3f}" for key in ROBUST),
            f"{cell['claimed']:.3f} / {cell['true_share']:.3f}",
        ]
        for cell in sorted(result["cells"], key=lambda c: (c["set"], c["sigma"]))
    ]
    note = (
        "Mean co-clustering error: with the numbers found, and with the true ones given. *From the "
        "truth*: sweeps that start at the true blocks, about the lowest error that can be "
        "expected. The other methods are given the numbers. Last column: the share of right "
        "labels according to the confidence, and the true share, means over rows and columns."
    )
    heads = ["set, overlap", "sigma", "numbers right", "found", "given", "from the truth",
             "K-means", "SpectralBiclustering", "GaussianLatentBlockModel",
             "labels right: claimed / true"]  # fmt: skip
    return table(heads, rows) + source("robust", result, note)


def robust_summary() -> str:
    """Both overlaps of each set, without the columns that only experts need."""
    cells = [cell for cell in load("robust")["cells"] if cell["factor"] == 1]
    shown = ("found", "given", "k_means", "spectral_biclustering")
    rows = [
        [f"{cell['set']}, {cell['overlap']}", f"{cell['sigma']:.3g}",
         f"{cell['numbers_right']} of {cell['seeds']}", *(f"{cell[key]:.3f}" for key in shown)]
        for cell in sorted(cells, key=lambda c: (c["set"], c["sigma"]))
    ]  # fmt: skip
    heads = ["set, overlap", "sigma", "numbers right", "error, numbers found",
             "error, numbers given", "K-means, given", "SpectralBiclustering, given"]  # fmt: skip
    return table(heads, rows)


def scaling() -> str:
    result = load("scaling")
    rows = [
        [
            f"{cell['set']}, {cell['shape'][0]} x {cell['shape'][1]}, {cell['nnz']} non-zeros",
            *(f"{cell[f'seconds_{name}']:.2f}" for name in ("ours", "spectral")),
            f"{cell['ratio']:.1f}",
            f"{cell['ratio_of_processor_time']:.1f}",
            *(f"{cell[f'peak_megabytes_{name}']:.0f}" for name in ("ours", "spectral")),
            f"{cell['matrix_megabytes']:.0f}",
        ]
        for cell in result["cells"]
    ]
    note = (
        f"Medians of {result['cells'][0]['repeats']} fits, in turns: seconds of ours with the "
        f"numbers found and of SpectralCoclustering with the number given, their ratio on the "
        f"clock and in processor time (the machine was shared), and peak memory in addition to "
        f"the matrix, on {result['facts']['processor']}."
    )
    heads = ["matrix", "ours (s)", "spectral (s)", "ratio", "ratio, CPU", "ours (MB)",
             "spectral (MB)", "matrix (MB)"]  # fmt: skip
    return table(heads, rows) + source("scaling", result, note)


def sweeps() -> str:
    result = load("scaling")
    cells = result["sweeps"]
    rows = [
        ["milliseconds a sweep", *(f"{1000 * cell['seconds']:.1f}" for cell in cells)],
        ["nanoseconds a non-zero", *(f"{1e9 * c['seconds'] / c['nnz']:.0f}" for c in cells)],
    ]
    note = (
        f"Generated counts with {result['columns']} columns, {result['clusters']} row and as many "
        f"column clusters; the least processor time of several sweeps. It grows like the number "
        f"of non-zeros to the power {result['exponent']:.2f}."
    )
    return table(["non-zeros", *(str(cell["nnz"]) for cell in cells)], rows) + source(
        "scaling", result, note
    )


def rules() -> str:
    """The constants behind the rules, as the code has them."""
    whole, amounts = preparation._COUNT_SLOPE, preparation._AMOUNT_SLOPE
    floor, traits = preparation._FLOOR_SHARE, preparation._TRAIT_SHARE
    rows = [
        ["few entries differ from zero", f"less than {share(preparation._SPARSE_DENSITY)}"],
        ["variance grows with the mean: amounts", f"slope above {amounts:g}"],
        ["variance grows with the mean: whole numbers", f"slope above {whole:g}"],
        ["entries on the smallest value that make it a floor", share(floor)],
        ["yes-or-no columns that make a table of traits", share(traits)],
        ["clusters of the over-segmentation", f"{start._MIN_SEGMENTS} to {start._MAX_SEGMENTS}"],
        ["rows or columns that learn the centres of K-means", f"at most {start._SAMPLE:,}"],
        ["ICL's number is a small part of them", f"at most {share(select._TRUSTED_SHARE)}, or 2"],
        ["merges averaged on each side of a jump", f"{criteria._WINDOW}"],
    ]
    return table(["rule", "value"], rows)


TABLES: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (detector, detector_summary, reach, nostructure, quality, noise, diagonal, degree,
                 movielens, speed, real, real_sets, robust, robust_summary, rules, scaling, sweeps)
}  # fmt: skip
for module in (automatic, claims, commands, faults, growth, large, layers, mixed, ratings,
               reliability, reproduction, setting, suite, supply, variants):  # fmt: skip
    TABLES |= module.TABLES


def fill(name: str) -> str:
    try:
        return TABLES[name]()
    except FileNotFoundError as missing:
        return f"Not measured yet: `python -m benchmarks.{Path(missing.filename).stem}` does."


def render(page: str) -> str:
    return SLOT.sub(lambda slot: f"{slot[1]}\n{fill(slot[2])}\n\n{slot[3]}", page)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on differences")
    check = parser.parse_args().check
    stale = []
    for path in sorted(DOCS.glob("**/*.md")):
        page = path.read_text(encoding="utf-8")
        fresh = render(page)
        if fresh != page:
            stale.append(str(path.relative_to(DOCS)))
            if not check:
                path.write_text(fresh, encoding="utf-8", newline="\n")
    if stale:
        print(f"{'out of date' if check else 'rewritten'}: {', '.join(stale)}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
