"""How the time of CCOT and CCOT-GW grows: exponents beside those that the paper states.

Crisp 3 x 3 blocks; one of the number of rows, of columns and of draws grows, the others stay.
Processor time on one thread, the least of several fits.
"""

import argparse
import time

from benchmarks.record import store
from ccot import CCOT, CCOTGW
from ccot.datasets import make_latent_blocks
from ccot.experiments.bench.summary import fit_exponent

MEANS = ((4.0, 0.5, 1.5), (1.8, 4.5, 1.1), (1.5, 1.5, 5.5))
# Method, what grows, its sizes, and rows, columns and draws otherwise.
CASES = (
    ("CCOT", "draws", (100, 200, 400, 800, 1600), (600, 200, None)),
    ("CCOT", "rows", (1_000, 3_000, 10_000, 30_000, 100_000), (None, 100, 200)),
    ("CCOT", "columns", (50, 100, 200, 400, 800), (2_000, None, 20)),
    ("CCOT-GW", "rows", (200, 400, 800, 1_600), (None, 200, None)),
    ("CCOT-GW", "columns", (200, 400, 800, 1_600), (200, None, None)),
    ("CCOT-GW, no refinement", "rows", (400, 800, 1_600, 3_200), (None, 200, None)),
    ("CCOT-GW, no refinement", "columns", (400, 800, 1_600, 3_200), (200, None, None)),
)
# Powers of rows, columns and draws: n_s (n + d), and n^2 d + d^2 n.
PAPER = {
    ("CCOT", "draws"): 1,
    ("CCOT", "rows"): 1,
    ("CCOT", "columns"): 1,
    ("CCOT-GW", "rows"): 2,
    ("CCOT-GW", "columns"): 2,
}


def fit_seconds(method: str, n_rows: int, n_columns: int, draws: int | None) -> float:
    drawn = make_latent_blocks(MEANS, n_rows, n_columns, sigma=0.01, random_state=0)
    if method == "CCOT":
        model = CCOT(n_samplings=draws, sampling="uniform", random_state=0)
    else:
        model = CCOTGW(exact_refinement=method == "CCOT-GW")
    start = time.process_time()
    model.fit(drawn.data)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    repeats = parser.parse_args().repeats
    cells = []
    for method, what, sizes, others in CASES:
        seconds = []
        for size in sizes:
            shape = [size if other is None else other for other in others]
            if method != "CCOT":
                shape[2] = None
            seconds.append(min(fit_seconds(method, *shape) for _ in range(repeats)))
        cells.append(
            {
                "method": method,
                "grows": what,
                "fixed": dict(zip(("rows", "columns", "draws"), others, strict=True)),
                "sizes": sizes,
                "seconds": [round(value, 4) for value in seconds],
                "exponent": fit_exponent(sizes, seconds),
                "paper": PAPER[method.split(",")[0], what],
            }
        )
        print(cells[-1], flush=True)
    print(f"stored {store('complexity', {'repeats': repeats, 'cells': cells})}")


if __name__ == "__main__":
    main()
