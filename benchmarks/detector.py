"""How often each detector sees a jump where there is none: sorted samples of smooth laws."""

import argparse

import numpy as np

from benchmarks.record import store
from ccot.scalings.jumps import DETECTORS, LEVEL, find_jumps

LAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "t3": lambda rng, shape: rng.standard_t(3, size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(size=shape),
    "beta(.5, .5)": lambda rng, shape: rng.beta(0.5, 0.5, size=shape),
}
SIZES = (50, 100, 200, 400, 600)


def count_alarms(law: str, size: int, samples: int, seed: int) -> list[dict]:
    values = np.sort(LAWS[law](np.random.default_rng(seed), (samples, size)), axis=1)
    cells = []
    for method in DETECTORS:
        mask = find_jumps(values, method).mask
        cells.append(
            {
                "method": method,
                "law": law,
                "values": size,
                "samples": samples,
                "false_alarms": int(mask.any(axis=1).sum()),
                "jumps": int(mask.sum()),
            }
        )
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    arguments = parser.parse_args()
    cells = []
    for seed, (law, size) in enumerate((law, size) for law in LAWS for size in SIZES):
        cells += count_alarms(law, size, arguments.samples, seed)
        ours, theirs = cells[-2]["false_alarms"], cells[-1]["false_alarms"]
        print(f"{law:13} {size:4}  multiscale {ours:5}  authors {theirs:5}", flush=True)
    path = store("detector", {"level": LEVEL, "cells": cells})
    print(f"stored {path}")


if __name__ == "__main__":
    main()
