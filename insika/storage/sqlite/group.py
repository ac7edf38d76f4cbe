"""One transaction for many operations, and what each of them came to.

Nobody is told anything here before COMMIT has returned: an operation's answer is a fact or it is not given.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from insika.storage.port import StoreRefused, StoreUnavailable
from insika.storage.sqlite.connection import begin_write

Operation = Callable[[sqlite3.Connection], Any]


class Undo(Exception):
    """Raised inside an operation: undo all that it wrote, and give its caller `answer`."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one operation came to: its answer, or the error its caller gets."""

    answer: Any = None
    error: BaseException | None = None


def commit_group(
    connection: sqlite3.Connection, operations: Sequence[Operation], lock_timeout_s: float
) -> list[Outcome]:
    """Run all in one transaction; one that raises undoes and concerns only itself.

    Nearly always none does, so all are run without a savepoint first. When one raises, everything is rolled back and
    all are run once more, each in a savepoint of its own: an operation may do nothing but read and write `connection`.
    Where the transaction as a whole fails (lock, disk, I/O), each of them gets a StoreUnavailable."""
    try:
        begin_write(connection, lock_timeout_s)
        outcomes = _all_together(connection, operations)
        if outcomes is None:
            connection.execute("ROLLBACK")
            begin_write(connection, lock_timeout_s)
            outcomes = [_run(connection, operation) for operation in operations]
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        _roll_back(connection)
        return [Outcome(error=unavailable(error)) for _ in operations]
    return outcomes


def read_snapshot(connection: sqlite3.Connection, operation: Operation) -> Outcome:
    """Run a reading operation on one snapshot."""
    try:
        connection.execute("BEGIN")
        try:
            return Outcome(answer=operation(connection))
        except sqlite3.Error as error:
            return Outcome(error=as_store_error(error))
        except BaseException as error:
            return Outcome(error=_deliverable(error))
        finally:
            _roll_back(connection)
    except sqlite3.Error as error:
        return Outcome(error=unavailable(error))


def as_store_error(error: sqlite3.Error) -> StoreUnavailable | StoreRefused:
    """No error of SQLite's leaves the store as itself."""
    broken_statement = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    if isinstance(error, sqlite3.OperationalError) and not broken_statement:
        return unavailable(error)
    refused = StoreRefused(f"the store refused a write: {error}")
    refused.__cause__ = error
    return refused


def unavailable(error: sqlite3.Error) -> StoreUnavailable:
    answer = StoreUnavailable(f"the database could not be used: {error}")
    answer.__cause__ = error
    return answer


def _all_together(connection: sqlite3.Connection, operations: Sequence[Operation]) -> list[Outcome] | None:
    """None: one of them raised, whatever it was."""
    try:
        return [Outcome(answer=operation(connection)) for operation in operations]
    except sqlite3.Error:
        if not connection.in_transaction:
            raise  # SQLite has given up the whole transaction: nobody's write is left
        return None
    except BaseException:
        return None


def _run(connection: sqlite3.Connection, operation: Operation) -> Outcome:
    connection.execute("SAVEPOINT operation")
    try:
        outcome = Outcome(answer=operation(connection))
    except Undo as undo:
        outcome = Outcome(answer=undo.answer)
    except sqlite3.Error as error:
        if not connection.in_transaction:
            raise  # SQLite has given up the whole transaction: nobody's write is left
        outcome = Outcome(error=as_store_error(error))
    except BaseException as error:
        outcome = Outcome(error=_deliverable(error))
    else:
        connection.execute("RELEASE operation")
        return outcome
    connection.execute("ROLLBACK TO operation")
    connection.execute("RELEASE operation")
    return outcome


def _deliverable(error: BaseException) -> BaseException:
    if isinstance(error, StopIteration):  # a future cannot carry it
        wrapped = RuntimeError("an operation raised StopIteration")
        wrapped.__cause__ = error
        return wrapped
    return error


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        pass  # the next BEGIN will say what is wrong; this group has failed already
