"""Tables of what faults cost, which ``docs/render.py`` puts in."""

from collections.abc import Callable

from ratings import load, table


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
        "Seconds on the clock and of the processor, and which shares of them went into the "
        "checkpoint, with the usual time between writes and a checksum of the data included. The "
        "disk and the processor were shared with other work, which shows in the first share. "
        f"{facts['processor']}, {facts['cores']} cores. Stored in "
        f"`benchmarks/results/faults.json` by `{facts['command']}`, {facts['date']}."
    )
    return table(heads, rows) + f"\n\n{note}"


TABLES: dict[str, Callable[[], str]] = {"checkpoint_prices": checkpoint_prices}
