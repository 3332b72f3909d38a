import time
from itertools import islice

import numpy as np
import pytest

from ccot.runtime.backends import in_parts_that_fit
from ccot.runtime.progress import duration
from ccot.runtime.run import Checkpoint, as_generator, counted, in_threads


def test_seeds_and_generators():
    assert as_generator(0).integers(100) == 85
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator
    with pytest.raises(ValueError, match="random_state must be an integer"):
        as_generator("seed")


def test_items_are_counted():
    seen = []
    assert list(counted("ab", "letters", lambda *message: seen.append(message))) == ["a", "b"]
    assert seen == [("letters", 0, 2), ("letters", 1, 2), ("letters", 2, 2)]


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_threads_yield_in_order_and_raise_what_fails(n_jobs):
    def work(item):
        time.sleep(0.002 * (3 - item))
        return 1 / (item - 9)

    assert list(in_threads(work, range(4), n_jobs)) == [1 / (item - 9) for item in range(4)]
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda item: 1 / item, [1, 0], n_jobs))


def test_without_a_checkpoint_everything_is_made():
    nothing_kept = Checkpoint()
    assert nothing_kept.piece("answer", lambda: 42) == 42
    assert list(nothing_kept.series("letters", 3, lambda n_kept: "abc"[n_kept:])) == ["a", "b", "c"]
    powers = nothing_kept.loop("powers", 1, lambda state: 2 * state)
    assert list(islice(powers, 3)) == [2, 4, 8]


def test_work_is_split_until_it_fits():
    def add_up(items):
        if len(items) > 2:
            raise MemoryError
        return sum(items)

    assert in_parts_that_fit(add_up, [1, 2, 3, 4, 5]) == [3, 3, 9]


@pytest.mark.parametrize(
    ("seconds", "words"), [(7, "7 s"), (75, "1 min 15 s"), (7500, "2 h 5 min")]
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words
