"""What all command-line tools share: how they end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from groot_ros.errors import GrootError

FAILED = 2
INTERRUPTED = 130


def run(function: Callable[[], int]) -> int:
    """Run a tool's work and turn its ending into an exit status.

    A ``GrootError`` is one sentence for the user: it is printed without a traceback, and the status is 2. A reader that
    has gone away, as in ``... | head``, is no error.
    """
    try:
        status = function()
        sys.stdout.flush()
    except GrootError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status
