"""The files and connections that this process may have open: each visitor takes some."""

import os
import sys
from contextlib import suppress

RESERVED = 100
"""descriptors that stay free for the visitors who are here, whose pages open some for as long as they run"""
_OPEN = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"


def raise_limit() -> None:
    """Let this process have as many open as the system grants it, where a shell grants less by default."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def has_room() -> bool:
    """Whether one more visitor can be served; True where the system does not tell."""
    with suppress(ImportError, OSError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return limit == resource.RLIM_INFINITY or len(os.listdir(_OPEN)) + RESERVED <= limit
    return True
