"""The table of CCOT's growth, which ``docs/render.py`` puts in."""

from collections.abc import Callable

from stored import load, source, table


def power(number: int) -> str:
    return f"{number:.0e}".replace("e+0", "e")


def ccot_growth() -> str:
    result = load("growth")
    facts = result["facts"]
    fits = [*result["fits"], result["large"]]
    rows = [
        [
            power(fit["rows"]),
            f"{fit['matrix_megabytes'] / 1e3:g}",
            f"{fit['draws']}",
            f"{fit['processor_seconds']:.1f}",
            f"{fit['peak_megabytes']:.0f}",
            f"{fit['numbers'][0]} x {fit['numbers'][1]}",
            f"{fit['row_error']:g}",
        ]
        for fit in fits
    ]
    note = (
        f"Blocks of the paper's first simulated set in {result['columns']} columns, float32, "
        f"generated during the fit. Processor time includes generating every row twice. It grows "
        f"like the number of rows to the power {result['exponent']:.2f} up to "
        f"{power(result['fits'][-1]['rows'])} rows, and to the power "
        f"{result['steepest_exponent']:.2f} at most between two neighbouring sizes. Memory is the "
        f"peak of the process, with Python and its libraries ({fits[0]['megabytes_before']:.0f} "
        f"MB); it grows by {100 * result['memory_growth']:.0f} % from 1e5 rows to "
        f"{power(fits[-2]['rows'])}. On the clock, {power(fits[-1]['rows'])} rows took "
        f"{fits[-1]['seconds']:.0f} s with two threads. "
        f"{facts['processor']}, {facts['cores']} cores."
    )
    heads = ["rows", "matrix (GB)", "draws", "seconds", "memory (MB)", "clusters", "row error"]
    return table(heads, rows) + source("growth", result, note, fits)


TABLES: dict[str, Callable[[], str]] = {"ccot_growth": ccot_growth}
