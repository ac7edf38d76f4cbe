"""Free ports on loopback, from a range that no connection takes by chance.

Between the choice and the server's own bind another may take a port; whoever asks here must be ready to ask again.
"""

from __future__ import annotations

import random
import socket

LOOPBACK = "127.0.0.1"
# Below the ports that Linux (from 32768) and macOS (from 49152) give to outgoing connections: a server that is killed
# must find its own port free again, however busy the machine is meanwhile.
_RANGE = range(20_000, 32_000)
_TRIES = 1_000


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on just now. Raises OSError when none can be found."""
    found: list[int] = []
    for _ in range(_TRIES):
        port = random.choice(_RANGE)
        if port not in found and is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"no {count} free ports between {_RANGE.start} and {_RANGE.stop} on {LOOPBACK}")


def is_free(port: int) -> bool:
    """Whether a server could listen there just now."""
    with socket.socket() as probe:
        try:
            # Without SO_REUSEADDR, so that a port whose last connections linger is not chosen.
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
