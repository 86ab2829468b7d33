"""Several images at once: a resize of one image runs on one core, so the images of an observation share the cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``work`` of every item, in their order, on as many threads as torch uses.

    One thread (a worker of a data loader) or one item needs no others. ``work`` must let go of the interpreter, as the
    resizes of OpenCV and torch do, else nothing is gained.
    """
    threads = min(torch.get_num_threads(), len(items))
    return list(_pool(torch.get_num_threads()).map(work, items) if threads > 1 else map(work, items))


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="images")


# Threads do not survive a fork: the child makes its own.
os.register_at_fork(after_in_child=_pool.cache_clear)
