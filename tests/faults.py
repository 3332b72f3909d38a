"""Faults that tests provoke."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def no_room(n_bytes: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes: the system refuses as it does when a disk is full."""
    resource = pytest.importorskip("resource", reason="nothing limits the size of files")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
