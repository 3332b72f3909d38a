"""Run every benchmark and store its results: ``python -m benchmarks.run``."""

import subprocess
import sys

MODULES = ("detector", "nostructure", "quality", "speed")


def main() -> None:
    for module in MODULES:
        print(f"== {module}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}"], check=True)


if __name__ == "__main__":
    main()
