"""Messages as large as images, many times a second, without giving their memory back to the system in between."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's mallopt, from its malloc.h."""
KEPT_BYTES = 512 * 1024 * 1024
LARGEST_FROM_HEAP_BYTES = 32 * 1024 * 1024
"""The most that glibc accepts."""


def keep_freed_memory() -> bool:
    """Let the C library keep what is freed, for the next message.

    By default glibc returns the memory of a freed image at once, and the next image costs a page fault for every 4 KiB
    of it: with three cameras of 640x480 that was a third of the receiver's processor time, and on a machine that
    reclaims memory it can be most of it.

    Returns:
        Whether the C library knows these options; another one than glibc has its own habits and is left alone.

    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)) and bool(mallopt(M_MMAP_THRESHOLD, LARGEST_FROM_HEAP_BYTES))
