"""One process of one target: ``python -m fuzz.run TARGET --seconds N``."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

# Memory that libraries reserve ahead would hide what a file makes them take.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
os.environ.setdefault("MALLOC_ARENA_MAX", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import atheris

from fuzz.follow import follow
from fuzz.targets import TARGETS, Target
from fuzz.watch import Guard

_LONGEST = 1 << 17
# The engine's alarm goes by the clock, and other programs want to run as well.
_PATIENCE = 20


class TooSlowError(AssertionError):
    """A read that took more processor time than it may."""


def main() -> None:
    """Fuzz until the time is over or something is found."""
    options = _options()
    target = TARGETS[options.target]
    warnings.simplefilter("ignore")
    options.corpus.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (options.corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    folder = options.out / "input"
    folder.mkdir(exist_ok=True)
    follow()
    attack = Attack(target, folder, options.out / "watch.json", options.seconds)
    flags = [
        sys.argv[0], str(options.corpus), f"-artifact_prefix={options.out}/",
        f"-timeout={_PATIENCE * target.seconds}", f"-max_len={_LONGEST}",
        "-rss_limit_mb=4096", "-print_final_stats=1", "-len_control=0",
        f"-seed={options.seed}", "-reload=0",
    ]  # fmt: skip
    if options.replay:
        flags = [sys.argv[0], *map(str, options.replay)]
    atheris.Setup(flags, attack, custom_mutator=attack.mutate)
    atheris.Fuzz()


class Attack:
    """Feeds one target and counts what happens."""

    def __init__(self, target: Target, folder: Path, news: Path, seconds: float) -> None:
        self._target, self._path, self._news = target, folder / target.name, news
        self._seconds = seconds
        self._guard = Guard(folder)
        self.executions = self.accepted = 0
        self.slowest = 0.0
        # What is loaded and cached at the first read is none of a file's doing.
        self._seeds = target.seeds()
        for seed in self._seeds:
            self._read(seed)
        self._began = self._told = time.perf_counter()
        self._began_cpu = _processor_s()

    def __call__(self, data: bytes) -> None:
        """Let the target read the bytes; whatever it may not raise goes through."""
        self.executions += 1
        self._path.write_bytes(data)
        began = _processor_s()
        try:
            with self._guard.watch(len(data)):
                self._target.read(self._path)
            self.accepted += 1
        except self._target.errors:
            pass
        taken = _processor_s() - began
        self.slowest = max(self.slowest, taken)
        if taken > self._target.seconds:
            raise TooSlowError(f"{taken:.0f} s of processor time")
        if (now := time.perf_counter()) > self._told + 5:
            self._told = now
            self._tell()
            if _processor_s() - self._began_cpu > self._seconds:
                os._exit(0)  # the engine knows no processor time; what it found is written

    def mutate(self, data: bytes, longest: int, seed: int) -> bytes:
        """Return changed bytes: by the file's own structure, or by the engine's tricks."""
        chance = random.Random(seed)

        def change(part: bytes) -> bytes:
            return atheris.Mutate(part, len(part) + chance.choice([0, 8, 256])) if part else b"0"

        # What is broken already teaches little: mostly, one that is whole is changed instead.
        for whole in (data, chance.choice(self._seeds)) if chance.random() < 0.9 else ():
            changed = chance.choice(self._target.mutators)(whole, chance, change)
            if changed is not None and len(changed) <= longest:
                return changed
        return atheris.Mutate(data, longest)

    def _tell(self) -> None:
        """Write what was counted; the engine leaves without a word, so it is done now and then."""
        seen = {
            "executions": self.executions,
            "seconds": round(self._told - self._began, 1),
            "cpu_s": round(_processor_s() - self._began_cpu, 1),
            "accepted": self.accepted,
            "slowest_s": round(self.slowest, 3),
            "growth_mb": round(self._guard.growth / 1e6, 1),
        }
        self._news.write_text(json.dumps(seen) + "\n")

    def _read(self, data: bytes) -> None:
        self._path.write_bytes(data)
        with contextlib.suppress(*self._target.errors):
            self._target.read(self._path)


def _processor_s() -> float:
    """Return the processor's time of this process and of those that it has ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("replay", nargs="*", type=Path, help="inputs to try instead of fuzzing")
    parser.add_argument("--seconds", type=int, default=60, help="of processor time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    base = Path(tempfile.gettempdir(), "ccot-fuzz")
    options.corpus = options.corpus or base / options.target / "corpus"
    options.out = options.out or base / options.target
    return options


if __name__ == "__main__":
    main()
