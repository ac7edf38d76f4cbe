"""What an error of the driver means to whoever asked: ask again, or never again. None leaves the store as it is.

The texts of the server's errors may hold what people wrote, so only its own words and names are passed on.
"""

from __future__ import annotations

import re

import psycopg

from insika.errors import InsikaError
from insika.storage.port import StoreRefused, StoreUnavailable

_REFUSED = (
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
    psycopg.errors.RaiseException,
)
"""All else may go away: no connection, no answer in time, a lock, a deadlock, a full disk, a server that only reads."""


_NEVER = {
    r"password authentication failed|no password supplied": "Set a user and a password in INSIKA_DATABASE_URL that it "
    "knows",
    r"FATAL: +role \".*\" does not exist": "Create the user, or name another in INSIKA_DATABASE_URL",
    r"FATAL: +database \".*\" does not exist": "Create the database, then run: insika migrate",
    r"FATAL: +(?:no pg_hba\.conf entry|pg_hba\.conf rejects)|FATAL: .* authentication failed": "Let the user in from "
    "here (pg_hba.conf), or name another in INSIKA_DATABASE_URL",
    r"FATAL: +permission denied for database": "Let the user connect (GRANT CONNECT), or name another in "
    "INSIKA_DATABASE_URL",
}
"""What a server says that will not let somebody in, and what to do about it. libpq passes no code on for a connection
that failed, only its text; a server that speaks another language is taken for one that is away."""


class DatabaseRefuses(InsikaError):
    """The server answers and will not do: the password, the user, the database. Asking again cannot help."""

    type = "database_refuses"


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


def what_to_do(error: psycopg.Error) -> str | None:
    """About a connection that was refused for good. None: it may be made later."""
    if error.sqlstate is not None:
        return None
    return next((advice for said, advice in _NEVER.items() if re.search(said, str(error))), None)


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
