"""What the store on PostgreSQL does without a server: its bounds and parameters, how it reads times, what it tells of
errors, and that its hot statements are short enough."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib import resources

import psycopg
import pytest

from insika.clock import DUE_NOW, NEVER
from insika.messages import Verbatim
from insika.storage.port import StoreRefused, StoreUnavailable
from insika.storage.postgres import mapping
from insika.storage.postgres.connection import Bounds, parameters, read_time
from insika.storage.postgres.errors import as_store_error
from insika.storage.postgres.queries import sql
from insika.storage.rows import ApprovalDecision, CallState, TurnState, Verdict

URL = "postgresql://me:hush@db.example:5433/insika"
BOUNDS = Bounds.within(15)


@pytest.mark.parametrize("lease_s", [0.5, 3, 15, 60, 3600])
def test_every_wait_is_over_before_the_lease_is(lease_s: float) -> None:
    bounds = Bounds.within(lease_s)
    assert 0 < bounds.lock_s < lease_s / 3
    assert bounds.statement_s < bounds.wait_s < lease_s
    assert bounds.lock_s < bounds.statement_s < bounds.answer_s < lease_s
    assert bounds.answer_s < 60


def test_what_the_statements_rely_on_is_set_on_every_connection() -> None:
    options = parameters(URL, BOUNDS, "insika worker")["options"].split("-c ")
    settings = dict(option.strip().split("=") for option in options if option)
    assert settings["default_transaction_isolation"] == r"read\ committed"
    assert (settings["plan_cache_mode"], settings["jit"]) == ("force_generic_plan", "off")
    assert (settings["TimeZone"], settings["DateStyle"]) == ("UTC", "ISO")
    assert settings["lock_timeout"] == settings["idle_in_transaction_session_timeout"] == "4500"
    assert settings["statement_timeout"] == "10500"


def test_the_url_s_own_parameters_are_kept_beside_ours() -> None:
    given = parameters(f"{URL}?sslmode=require&application_name=mine&options=-c%20geqo%3Doff", BOUNDS, "insika worker")
    assert (given["host"], given["port"], given["dbname"], given["user"]) == ("db.example", "5433", "insika", "me")
    assert (given["sslmode"], given["application_name"]) == ("require", "mine")
    assert given["options"].startswith("-c geqo=off -c ")
    assert given["client_encoding"] == "utf8"
    assert parameters(URL, BOUNDS, "insika worker")["fallback_application_name"] == "insika worker"


def test_a_silent_server_is_looked_for() -> None:
    given = parameters(URL, BOUNDS, "insika")
    assert given["keepalives"] == 1
    assert given["keepalives_idle"] + given["keepalives_interval"] * given["keepalives_count"] < 15
    assert given["tcp_user_timeout"] < 15_000
    assert given["connect_timeout"] < 15


def test_a_url_that_cannot_be_read_is_not_repeated() -> None:
    with pytest.raises(StoreUnavailable) as refused:
        parameters("postgresql://me:hush@db.example/insika?nonsense=1", BOUNDS, "insika")
    assert "hush" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_times_are_read_with_both_their_ends() -> None:
    assert read_time("infinity") == NEVER
    assert read_time("-infinity") == DUE_NOW
    moment = datetime(2030, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)
    assert read_time("2030-01-02 03:04:05.6+00") == moment
    assert read_time("2030-01-02T03:04:05.600+00:00") == moment


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.UniqueViolation,
        psycopg.errors.CheckViolation,
        psycopg.errors.ForeignKeyViolation,
        psycopg.errors.IntegrityConstraintViolation,
        psycopg.errors.RaiseException,
        psycopg.errors.InvalidTextRepresentation,
        psycopg.errors.NumericValueOutOfRange,
        psycopg.errors.UndefinedTable,
        psycopg.errors.InsufficientPrivilege,
        psycopg.DataError,
    ],
)
def test_what_no_repetition_can_help_is_refused(error: type[psycopg.Error]) -> None:
    assert isinstance(as_store_error(error("no")), StoreRefused)


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError,
        psycopg.InterfaceError,
        psycopg.errors.AdminShutdown,
        psycopg.errors.CrashShutdown,
        psycopg.errors.CannotConnectNow,
        psycopg.errors.ConnectionFailure,
        psycopg.errors.QueryCanceled,
        psycopg.errors.LockNotAvailable,
        psycopg.errors.DeadlockDetected,
        psycopg.errors.SerializationFailure,
        psycopg.errors.DiskFull,
        psycopg.errors.OutOfMemory,
        psycopg.errors.TooManyConnections,
        psycopg.errors.ReadOnlySqlTransaction,
        psycopg.errors.IdleInTransactionSessionTimeout,
        psycopg.errors.IoError,
        psycopg.errors.InternalError_,
    ],
)
def test_what_may_go_away_is_unavailable(error: type[psycopg.Error]) -> None:
    assert isinstance(as_store_error(error("perhaps")), StoreUnavailable)


def test_an_error_is_told_by_its_code_and_without_line_ends() -> None:
    assert "23505 UniqueViolation" in str(as_store_error(psycopg.errors.UniqueViolation("Key (text)=(secret)")))
    assert "secret" not in str(as_store_error(psycopg.errors.UniqueViolation("Key (text)=(secret)")))
    assert "\n" not in str(as_store_error(psycopg.OperationalError("connection failed:\n\tIs it running?\n")))


def _statements() -> list[str]:
    folder = resources.files("insika.storage").joinpath("queries", "postgres")
    return [f"{role.name}/{file.name[:-4]}" for role in folder.iterdir() for file in role.iterdir()]


def test_statements_are_sent_without_their_comments() -> None:
    assert _statements()
    for name in _statements():
        assert "--" not in sql(name)
        assert sql(name).strip()


@pytest.mark.parametrize(
    "name",
    [
        *("intake/accept", "ownership/claim", "ownership/load", "ownership/release", "ownership/renew"),
        *("turns/start", "turns/append", "turns/start_call", "turns/finish_call", "turns/cross_boundary"),
        "endings/commit",
    ],
)
def test_what_every_turn_runs_is_short_enough_for_the_driver_to_remember(name: str) -> None:
    """psycopg reads a statement of more than 4,096 bytes anew each time (its MAX_CACHED_STATEMENT_LENGTH)."""
    assert len(sql(name).encode()) <= 4096


def test_what_was_loaded_as_one_text_is_read_as_rows() -> None:
    at = "2030-01-01T00:00:00+00:00"
    session = [1, "", "s", 2, "lease", at, "-infinity", False, 3, 0, 4, 1, 1, "t", "k", None, None, 0, 0, {"n": 1}, 9]
    job = [3, "j", "steer", "k", "hello", at, "steered", "t", None, 0, 0, "a", None, None, "customer", None, None, None]
    mail = [*job, None]
    turn = ["t", 1, 1, "running", None, 1, "a", None, None, "customer", "r", {"x": 1}, False, None, {}, None, 1, at, at]
    call = [1, 0, "c", "look_up", {"b": 1, "a": 2}, True, "started", None, False, False]
    spent = ["t", 1, 1, "answer", "offline/demo", "open", 0, 0, 0, 0]
    said = [4, "t", 2, 1, "assistant", "", [{"id": "c", "name": "look_up", "arguments": {"b": 1}}], None, False, None]
    verbatim = '{"model":"a/b","parts":[{"n":1}]}'
    asked = ["id", "t", 1, "c", "look_up", "h", at, at, "approved", "ops", "", at]
    text = json.dumps(
        [at, session, [mail], [*turn, None, "a/b", 1, ["x", None]], [call], [spent], [[*said, verbatim]], [asked]]
    )
    loaded = mapping.loaded(json.loads(text))
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert (loaded.now, loaded.session.lease_until, loaded.session.due_at) == (now, now, DUE_NOW)
    assert (loaded.session.mail_seq, loaded.session.vars, loaded.session.parked_ms) == (3, {"n": 1}, 9)
    assert (loaded.mail[0].verdict, loaded.mail[0].at) == (Verdict.STEERED, now)
    assert loaded.turn is not None
    assert (loaded.turn.state, loaded.turn.started_at, loaded.turn.ended_at) == (TurnState.RUNNING, now, None)
    assert (loaded.calls[0].state, list(loaded.calls[0].arguments)) == (CallState.STARTED, ["b", "a"])
    assert loaded.model_calls[0].state == "open"
    assert (loaded.turn.model, loaded.turn.depth, loaded.turn.routes) == ("a/b", 1, ("x", None))
    assert loaded.log[0].message.tool_calls[0].arguments == {"b": 1}
    assert loaded.log[0].message.verbatim == Verbatim("a/b", ({"n": 1},))
    (approval,) = loaded.approvals
    assert (approval.decision, approval.expires_at, approval.reason) == (ApprovalDecision.APPROVED, now, "")


def test_lists_of_nothing_are_loaded_as_nothing() -> None:
    at = "2030-01-01T00:00:00+00:00"
    session = [1, "", "s", 2, "lease", at, "infinity", False, 0, 0, 0, 0, 0, None, None, None, None, 0, 0, {}, 0]
    loaded = mapping.loaded([at, session, None, None, None, None, None, None])
    assert (loaded.mail, loaded.turn, loaded.calls, loaded.model_calls, loaded.log) == ((), None, (), (), ())
    assert loaded.approvals == ()
    assert loaded.session.due_at == NEVER
