"""Where log lines go and how they look: set once, by the process's composition, before anything runs.

Nothing that a person or a model said may stand in a line. Callers keep to counts, ids and times; what they cannot
answer for is the message of an exception, which may quote anything, so only those of errors that we word ourselves,
or that come from the disk and the database, are written out.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import traceback
from types import TracebackType
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from insika.errors import InsikaError

LEVELS = ("debug", "info", "warning", "error")

_SPEAKS_FOR_ITSELF = (InsikaError, OSError, sqlite3.Error)
_SPOKEN_FOR = ("anthropic", "dramatiq", "httpx2", "openai", "pika")
"""Libraries that quote messages and headers, tell one failed try in half a dozen errors, or write a line for each
request. Whoever uses them says it once."""


def configure_logging(level: str, stream: TextIO | None = None) -> None:
    """Write lines of `level` and above to `stream` (standard error): readable on a terminal, else one JSON object a
    line. What libraries log by the standard library goes the same way. Raises ValueError for an unknown level."""
    if level not in LEVELS:
        raise ValueError(f"log level must be one of {', '.join(LEVELS)}, got {level!r}")
    stream = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _name_what_went_wrong,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _first_line],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(stream)],
            keep_exc_info=False,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    for library in _SPOKEN_FOR:
        logging.getLogger(library).setLevel(logging.CRITICAL)


def _renderer(stream: TextIO) -> Processor:
    if stream.isatty():
        return structlog.dev.ConsoleRenderer(colors=not os.environ.get("NO_COLOR"))
    return structlog.processors.JSONRenderer(ensure_ascii=False)


def _first_line(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """asyncio puts the repr of a failed task, and with it the exception's message, on the lines below."""
    event["event"] = str(event["event"]).partition("\n")[0]
    return event


def _name_what_went_wrong(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """In place of `exc_info`: each error's type and where it was raised, the innermost call last."""
    given = event.pop("exc_info", None)
    error = _error(given)
    if error is not None:
        event["error"] = _named(error)
        event["raised_at"] = _places(error.__traceback__)
        cause = error.__cause__ or error.__context__
        if cause is not None:
            event["caused_by"] = _named(cause)
    return event


def _error(given: Any) -> BaseException | None:
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple):
        return cast("BaseException | None", given[1])
    return sys.exc_info()[1] if given else None


def _named(error: BaseException) -> str:
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, _SPEAKS_FOR_ITSELF) else name


def _places(trace: TracebackType | None) -> list[str]:
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
