"""What an error of the driver means to whoever asked: ask again, or never again. None leaves the store as it is.

The texts of the server's errors may hold what people wrote, so only its own words and names are passed on.
"""

from __future__ import annotations

import psycopg

from insika.storage.port import StoreRefused, StoreUnavailable

_REFUSED = (
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
    psycopg.errors.RaiseException,
)
"""All else may go away: no connection, no answer in time, a lock, a deadlock, a full disk, a server that only reads."""


class Undone(Exception):
    """The statement took itself back: a message, a call or a turn that it names was not there to be written."""


def as_store_error(error: psycopg.Error) -> Exception:
    """StoreUnavailable or StoreRefused; or what a statement itself says by `insika_undo`: Undone, or ValueError for a
    call that was never answered."""
    if error.sqlstate == "IN001":
        return Undone()
    if error.sqlstate == "IN002":
        return ValueError(error.diag.message_primary)
    if isinstance(error, _REFUSED):
        return StoreRefused(f"the store refused a write: {told(error)}")
    return StoreUnavailable(f"the database could not be used: {told(error)}")


def told(error: psycopg.Error) -> str:
    """The server's words about the error's kind, its code, and the guard's name; never a row's values."""
    if error.sqlstate is None:
        return " ".join(str(error).split())  # the driver's own, or about a connection
    known = [f"{error.sqlstate} {type(error).__name__}"]
    if error.diag.constraint_name:
        known.append(f"guard {error.diag.constraint_name}")
    elif not isinstance(error, psycopg.DataError) and error.diag.message_primary:
        known.append(error.diag.message_primary)
    return ", ".join(known)
