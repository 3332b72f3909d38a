"""Tables of ``docs/benchmarks.md``, which ``docs/render.py`` puts in, and its pictures.

``python docs/suite.py`` draws the pictures, from ``benchmarks/results/suite.json`` as well.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from stored import load, source, table

from ccot.experiments.bench.summary import Cell, Growth, growth, summarise
from ccot.plotting import PALETTE, new_figure

IMAGES = Path(__file__).parent / "images"
UNIT = "TransportCoclustering"
GROWING = {"rows": "rows", "columns": "columns", "nonzeros": "entries"}
OVERLAPS = ("published", "calibrated")
# Ours are drawn thick; the fainter ones are there for company.
STYLES = {
    "CCOT": (PALETTE[0], "-", "o", 2.4),
    "CCOTGW": (PALETTE[4], "-", "s", 2.4),
    "CCOTGW, no refinement": (PALETTE[4], "--", "s", 1.8),
    "TransportCoclustering": (PALETTE[5], "-", "D", 2.4),
    "TransportCoclustering, given": (PALETTE[5], "--", "D", 1.8),
    "POT, plain loop": (PALETTE[2], "-", "^", 1.2),
    "POT, log-domain loop": (PALETTE[2], "--", "^", 1.2),
    "POT, barycentre": (PALETTE[2], ":", "^", 1.2),
    "SpectralCoclustering": (PALETTE[3], "-", "v", 1.2),
    "SpectralBiclustering": (PALETTE[3], "--", "v", 1.2),
    "CGC": (PALETTE[1], "-", "P", 1.2),
    "sparsebm": (PALETTE[1], "--", "X", 1.2),
    "K-means": ("#555555", "-", ".", 1.0),
    "NMF": ("#555555", "--", ".", 1.0),
    "DKM": ("#555555", ":", ".", 1.0),
    "Tri-NMF": ("#999999", "-", ".", 1.0),
    "GLBM": ("#999999", "--", ".", 1.0),
    "ITCC": ("#999999", ":", ".", 1.0),
    "RBC": ("#999999", "-.", ".", 1.0),
}


@cache
def suite() -> tuple[dict, list[Cell]]:
    result = load("suite")
    return result, summarise(result)


def look_up(cells: list[Cell]) -> dict[tuple[str, str], Cell]:
    return {(cell.rival, cell.case): cell for cell in cells}


def suite_run() -> str:
    """What was run, on what, under which limits."""
    result, _ = suite()
    facts, profile = result["facts"], result["profile"]
    limits = profile["limits"]
    packages = {rival["package"]: rival["version"] for rival in result["rivals"]}
    present = ", ".join(f"{name} {version}" for name, version in packages.items() if version)
    absent = ", ".join(r["name"] for r in result["rivals"] if not r["version"])
    rows = [
        ["command", f"`{facts['command']}`, {facts['date']}"],
        ["machine", f"{facts['processor']}, {facts['cores']} cores, {facts['gigabytes']} GB"],
        ["load when it began and ended", f"{facts['load']} and {facts.get('load_at_end', '?')}"],
        ["Python, NumPy, SciPy",
         ", ".join([facts["python"], facts["versions"]["numpy"], facts["versions"]["scipy"]])],
        ["rivals", present + (f"; not installed: {absent}" if absent else "")],
        ["fits", f"{len(result['trials'])}, each on one core; at most {limits['seconds']:g} s and "
                 f"{limits['gigabytes']:g} GB"],
    ]  # fmt: skip
    return table(["", "of `benchmarks/results/suite.json`"], rows)


def suite_paper(overlap: str) -> str:
    """Errors on the paper's sets, and times in units of one of ours."""
    result, cells = suite()
    seen = look_up(cells)
    cases = [f"{name} {overlap}" for name in ("D1", "D2", "D3", "D4")]
    cases = [case for case in cases if (UNIT, case) in seen]
    rows = []
    for rival in result["rivals"]:
        entries = [seen.get((rival["name"], case)) for case in cases]
        if any(entries):
            name = rival["name"] + ("" if rival["told"] else " *")
            rows.append([name, *(paper_entry(cell, seen[UNIT, cell.case]) if cell else ""
                                 for cell in entries)])  # fmt: skip
    note = (
        f"Mean co-clustering error over {result['profile']['paper_seeds']} matrices; time, as a "
        f"multiple of `{UNIT}`'s. Methods with * find the numbers of clusters, the others are "
        "given them. POT solves only the transport problems and has no labels."
    )
    return table([overlap, *(case.split()[0] for case in cases)], rows) + f"\n\n{note}"


def paper_entry(cell: Cell, unit: Cell) -> str:
    if cell.seconds is None or unit.seconds is None:
        return cell.status
    error = "" if cell.error is None else f"{cell.error:.3f}; "
    return f"{error}{cell.seconds / unit.seconds:.2g} x"


def suite_transport() -> str:
    """CCOT and CCOTGW beside the same transport problems solved with POT."""
    result, cells = suite()
    seen = look_up(cells)
    pairs = [
        (case["name"], "CCOT", rival)
        for case in result["cases"]
        if case["axis"] == "draws"
        for rival in ("POT, plain loop", "POT, log-domain loop")
    ] + [(f"{name} published", "CCOTGW, no refinement", "POT, barycentre")
         for name in ("D1", "D2", "D3", "D4")]  # fmt: skip
    rows = []
    for case, ours, theirs in pairs:
        our, their = seen.get((ours, case)), seen.get((theirs, case))
        if our and their and our.seconds:
            ratio = their.status if their.seconds is None else f"{their.seconds / our.seconds:.1f}"
            rows.append([f"{case}: {ours}, beside {theirs}", ratio, megabytes(our),
                         megabytes(their)])  # fmt: skip
    note = (
        "Processor time of POT divided by ours, and peak memory in addition to the matrix. Ours "
        "includes jumps and, for `CCOT`, votes."
    )
    heads = ["", "times faster", "ours (MB)", "POT (MB)"]
    return table(heads, rows) + f"\n\n{note}"


def megabytes(cell: Cell) -> str:
    return "" if cell.megabytes is None else f"{cell.megabytes:.0f}"


def suite_growth(axis: str) -> str:
    """Exponents along an axis, how far each rival came, and what it made of the largest matrix."""
    result, cells = suite()
    rows = []
    for rival in result["rivals"]:
        here = [cell for cell in cells if (cell.rival, cell.axis) == (rival["name"], axis)]
        done = [cell for cell in here if cell.seconds is not None]
        if not here:
            continue
        last = max(done, key=lambda cell: cell.size, default=None)
        stop = next((cell.status for cell in here if cell.seconds is None), "")
        rows.append([
            rival["name"],
            *(exponent(growth(cells, rival["name"], axis, what))
              for what in ("seconds", "megabytes")),
            *(["", "", "", ""] if last is None else [
                f"{last.size:,}", f"{last.seconds:.2g}", megabytes(last),
                "" if last.error is None else f"{last.error:.3f}"]),
            stop.removeprefix("not asked: "),
        ])  # fmt: skip
    heads = [axis, "exponent of time", "of memory", f"largest ({GROWING[axis]})",
             "its seconds", "its MB", "its error", "then"]  # fmt: skip
    return table(heads, rows) + f"\n\n{fixed(result, axis)}"


def exponent(seen: Growth) -> str:
    return "" if seen.exponent is None else f"{seen.exponent:.2f}"


def fixed(result: dict, axis: str) -> str:
    shapes = [case["shape"] for case in result["cases"] if case["axis"] == axis]
    if not shapes:
        return ""
    first, last = (f"{rows:,} x {columns:,}" for rows, columns in (shapes[0], shapes[-1]))
    return f"From {first} to {last}."


def bench_growth() -> str:
    """CCOT on rows that are made when they are asked for."""
    result = load("growth")
    fits = [*result["fits"], *([result["large"]] if "large" in result else [])]
    rows = [
        [f"{fit['rows']:,}", f"{fit['processor_seconds']:.1f}", f"{fit['peak_megabytes']:.0f}",
         f"{fit['matrix_megabytes']:,.0f}", " x ".join(map(str, fit["numbers"])),
         f"{fit['row_error']:.4f}"]
        for fit in fits
    ]  # fmt: skip
    note = (
        f"`CCOT` on {result['columns']} columns of float32 that are never stored. Processor time "
        f"grows like the number of rows to the power {result['exponent']:.2f}, at the last step "
        f"{result['last_exponent']:.2f} and at the steepest {result['steepest_exponent']:.2f}; the "
        "peak of the process, interpreter included, by "
        f"{100 * result['memory_growth']:.0f} % once out of core."
    )
    heads = ["rows", "seconds", "peak (MB)", "the matrix would be (MB)", "found", "row error"]
    return table(heads, rows) + source("growth", result, note, result["fits"])


def bench_gpu() -> str:
    """The paper's protocol on a card."""
    result = load("gpu")
    protocol, bandwidth, card = result["protocol"], result["bandwidth"], result["card"]
    draws = result["draw_by_draw"]
    equal = result["labels"]["fits_with_equal_labels"].values()
    rows = [
        [f"{protocol['sets']} sets of {protocol['draws_a_set']} draws (D1 to D3): card busy",
         f"{protocol['busy_seconds']:.2f} s"],
        ["the same, waits between its commands included", f"{protocol['device_seconds']:.2f} s"],
        ["the same, from matrices to labels", f"{protocol['end_to_end_seconds']:.1f} s"],
        *([f"{cell['set']}: times faster than POT, draw by draw on the card",
           f"{cell['times_faster_than_pot_draw_by_draw']:.0f}"] for cell in draws),
        *([f"CCOTGW, {cell['matrix']} (the CPU beside it: {cell['cpu_seconds']:.2f} s)",
           f"{cell['seconds']:.2f} s"] for cell in result["gromov"]),
        ["memory traffic, as a share of what a copy reaches",
         f"{100 * bandwidth['share_of_copy_bandwidth']:.0f} %"],
        ["fits with the labels of the CPU",
         f"{sum(equal)} of {result['labels']['seeds'] * len(equal)}"],
    ]  # fmt: skip
    note = f"{card['name']}, PyTorch {card['torch']}."
    return table(['`device="cuda"`', ""], rows) + source("gpu", result, note)


TABLES: dict[str, Callable[[], str]] = {
    "suite_run": suite_run,
    **{f"suite_{overlap}": partial(suite_paper, overlap) for overlap in OVERLAPS},
    "suite_transport": suite_transport,
    **{f"suite_{axis}": partial(suite_growth, axis) for axis in GROWING},
    "bench_growth": bench_growth,
    "bench_gpu": bench_gpu,
}


def draw(axis: str, folder: Path = IMAGES) -> Path | None:
    """Time and memory along an axis, on logarithmic scales."""
    _, cells = suite()
    figure, panels = new_figure(1, 2, size=(11, 4.6))
    for panel, what in zip(panels, ("seconds", "megabytes"), strict=True):
        for rival, (colour, line, marker, width) in STYLES.items():
            seen = growth(cells, rival, axis, what)
            if not seen.sizes:
                continue
            panel.loglog(
                seen.sizes, seen.values, color=colour, linestyle=line, marker=marker,
                linewidth=width, markersize=4, label=legend(rival, cells, axis),
            )  # fmt: skip
        sizes = sorted({cell.size for cell in cells if cell.axis == axis})
        panel.set_xticks(sizes, [short(size) for size in sizes])
        panel.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        panel.set_xlabel(f"{GROWING[axis]} of the matrix")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(color="#dddddd", linewidth=0.5)
    panels[0].set_ylabel("seconds of one core")
    panels[1].set_ylabel("MB beyond the matrix, at the peak")
    handles, labels = panels[0].get_legend_handles_labels()
    if not handles:
        return None
    figure.legend(
        handles, labels, loc="outside right center", frameon=False, fontsize=8,
        title="exponents: time, memory", title_fontsize=8,
    )  # fmt: skip
    path = folder / f"bench_{axis}.svg"
    # The same numbers give the same file: no date, no random names.
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": axis, "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})
    return path


def short(size: int) -> str:
    return f"{size:.0e}".replace("e+0", "e") if size >= 1000 else str(size)


def legend(rival: str, cells: list[Cell], axis: str) -> str:
    grown = [growth(cells, rival, axis, what).exponent for what in ("seconds", "megabytes")]
    return f"{rival}  " + ", ".join("–" if value is None else f"{value:.2f}" for value in grown)


if __name__ == "__main__":
    for growing in GROWING:
        print(draw(growing))
