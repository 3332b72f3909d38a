"""Tables of what faults cost, which ``docs/render.py`` puts in."""

from collections.abc import Callable

from stored import load, source, table


def checkpoint_prices() -> str:
    result = load("faults")
    facts = result["facts"]
    rows = [
        [
            name,
            " x ".join(f"{size:,}" for size in price["shape"]),
            f"{price['seconds']:.0f}",
            f"{100 * price['share']:.1f} %",
            f"{price['processor_seconds']:.0f}",
            f"{100 * price['processor_share']:.1f} %",
            f"{price['n_writes']}",
            f"{price['megabytes_written']:.0f}",
        ]
        for name, price in result["prices"].items()
    ]
    heads = ["fit", "matrix", "seconds", "share", "processor", "share", "writes", "MB written"]
    note = (
        "Seconds on the clock and seconds of processor time, each with the share spent on the "
        "checkpoint: writing at the usual intervals, and a checksum of the data. Disk and "
        "processor were shared with other work, which increases the first share. "
        f"{facts['processor']}, {facts['cores']} cores."
    )
    return table(heads, rows) + source("faults", result, note, result["prices"].values())


TABLES: dict[str, Callable[[], str]] = {"checkpoint_prices": checkpoint_prices}
