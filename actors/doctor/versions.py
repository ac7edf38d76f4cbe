"""Whether something is new enough. Versions that nobody has tried are not warned of: what is used here is in all newer
ones that there are."""

from __future__ import annotations

import re

from actors.doctor.finding import Finding, fail, ok, warn

PYTHON = (3, 11)
SQLITE = (3, 38)
POSTGRES = (15,)
RABBITMQ = (3, 10)
REDIS = (7,)


def new_enough(about: str, name: str, found: str, oldest: tuple[int, ...]) -> Finding:
    """`found` as it tells it itself: `3.10.8`, `15.4 (Debian 15.4-1)`, `4.0.0-rc.1`."""
    wanted = ".".join(map(str, oldest))
    numbers = re.match(r"\d+(?:\.\d+)*", found)
    if numbers is None:
        return warn(about, f"{name} does not say which version it is.", f"See that it is {wanted} or newer.")
    if tuple(map(int, numbers[0].split("."))) < oldest:
        return fail(about, f"{name} {numbers[0]} is too old.", f"Use {name} {wanted} or newer.")
    return ok(about, f"{name} {numbers[0]}.")
