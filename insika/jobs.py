"""The turn job: what a producer puts on the queue, read and checked before anything else looks at it.

A job that cannot be read is refused with the field and what was expected there; its error names types and sizes,
never what the person wrote. NUL and lone surrogates are replaced by U+FFFD in `text` and in the values of `vars`; in
ids, names and keys they are an error, because a replaced name would be another name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from insika.choices import Origin, QueueMode, words
from insika.documents import Path, canonical_digest, dotted, flaws, kind, parse_json, plain
from insika.errors import InvalidJob
from insika.parsing import did_you_mean
from insika.session_vars import var_updates
from insika.text import REPLACEMENT

MAX_BODY_BYTES = 256 * 1024
MAX_TEXT_BYTES = 64 * 1024
PLATFORM = ""
"""The tenant of jobs that name none."""

_BODY = "body"
_TOLD_AT_MOST = 5
_RFC_3339 = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ](?P<minute>[0-9]{2}:[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?P<fraction>\.[0-9]+)?(?P<offset>[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EXPECTED: Mapping[str, str] = {
    "session": "a string of 1 to 256 characters",
    "agent": "the id of a profile, a string of 1 to 256 characters",
    "text": f"a string of at least 1 character and at most {MAX_TEXT_BYTES} bytes of UTF-8",
    "id": "a string of 1 to 128 characters",
    "tenant": "a string of 1 to 256 characters",
    "customer": "a string of 1 to 256 characters",
    "channel": "the id of a channel, a string of 1 to 256 characters",
    "recipient": "a string of 1 to 1024 characters",
    "vars": "an object",
    "queue_mode": f"one of {words(QueueMode)}",
    "origin": f"one of {words(Origin)}",
    "sent_at": "a time with its offset as RFC 3339 has it, like 2030-01-31T12:00:00Z",
}


@dataclass(frozen=True, slots=True)
class TurnJob:
    """One message for one session.

    `id` None: the producer gave none. `tenant` "" is the platform itself. `channel` None: the answer is kept, not
    delivered. `queue_mode` None: the session, the agent and the platform decide. `sent_at` is aware UTC.
    """

    session: str
    agent: str
    text: str
    recipient: str
    id: str | None = None
    tenant: str = PLATFORM
    customer: str | None = None
    channel: str | None = None
    vars: Mapping[str, Any] = field(default_factory=dict)
    queue_mode: QueueMode | None = None
    origin: Origin = Origin.CUSTOMER
    sent_at: datetime | None = None


def parse_job(raw: bytes | str | Mapping[str, Any]) -> TurnJob:
    """The job that `raw` holds: a JSON text, UTF-8 when it is bytes, or its object.

    Raises InvalidJob; its `field` is the dotted path of the first mistake, or `body` when there is no object to look
    into. Sizes are those of the text as it is stored, but for U+FFFD, which counts as one byte as the NUL it may stand
    for does: a text that fits as it was sent also fits when it is sent again as it was stored.
    """
    document = _document(raw)
    if not isinstance(document, Mapping):
        raise InvalidJob(f"{_BODY}: expected a JSON object, got {kind(document)}", field=_BODY)
    mistakes = [
        (flaw.path or (_BODY,), flaw.why)
        for flaw in flaws(document)
        if not (flaw.cleanable and flaw.path[0] in ("text", "vars"))
    ]
    if mistakes:
        raise _invalid(mistakes[:_TOLD_AT_MOST], untold=max(0, len(mistakes) - _TOLD_AT_MOST))
    fields = plain(document)
    if isinstance(raw, Mapping):
        _check_size(json.dumps(fields, ensure_ascii=False))
    try:
        read = _Fields.model_validate(fields)
    except ValidationError as error:
        raise _refused(error) from None
    given = {name: getattr(read, name) for name in read.model_fields_set}
    var_updates(given.get("vars", {}))
    return TurnJob(**{"recipient": read.session, **given})


def session_named(raw: bytes) -> tuple[str, str] | None:
    """Tenant and session of a job, without reading more of it: two jobs of which this is equal must keep their order.
    None where it names none; such a job cannot be accepted."""
    try:
        document = _document(raw)
    except InvalidJob:
        return None
    if not isinstance(document, Mapping):
        return None
    tenant, session = document.get("tenant") or "", document.get("session")
    return (tenant, session) if isinstance(tenant, str) and isinstance(session, str) else None


def digest(job: TurnJob) -> str:
    """SHA-256 of the text, in hex: two jobs with the same id are the same job when this is equal too."""
    return hashlib.sha256(job.text.encode()).hexdigest()


def turn_key(agent: str, channel: str | None, recipient: str, origin: Origin = Origin.CUSTOMER) -> str:
    """What messages must have in common to share a turn, as a digest. The origin is part of it, so that what an
    engine or a timer says never enters a person's turn."""
    return canonical_digest([agent, channel, recipient, origin])


def _document(raw: bytes | str | Mapping[str, Any]) -> object:
    if isinstance(raw, Mapping):
        return raw
    if isinstance(raw, str):
        text = raw
        _check_size(text)
    elif isinstance(raw, bytes):
        _check_length(len(raw))
        try:
            # RFC 8259, section 8.1, lets a parser overlook the byte order mark that some producers write.
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidJob(f"{_BODY}: expected UTF-8, got byte {error.start} that is not", field=_BODY) from None
    else:
        raise InvalidJob(f"{_BODY}: expected a JSON object, got {kind(raw)}", field=_BODY)
    try:
        return parse_json(text)
    except ValueError as error:
        raise InvalidJob(f"{_BODY}: expected JSON, but {error}", field=_BODY) from None


def _check_size(text: str) -> None:
    _check_length(len(text.encode("utf-8", "surrogatepass")))


def _check_length(size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise InvalidJob(f"{_BODY}: expected at most {MAX_BODY_BYTES} bytes, got {size}", field=_BODY)


def _refused(error: ValidationError) -> InvalidJob:
    details = error.errors(include_url=False, include_context=False)
    told = [(it["loc"], _mistake(it["type"], it["loc"], it["input"])) for it in details[:_TOLD_AT_MOST]]
    return _invalid(told, untold=len(details) - len(told))


def _invalid(mistakes: list[tuple[Path, str]], untold: int = 0) -> InvalidJob:
    told = [f"{dotted(path)}: {why}" for path, why in mistakes]
    if untold:
        told.append(f"and {untold} more")
    return InvalidJob("; ".join(told), field=dotted(mistakes[0][0]))


def _mistake(type_: str, path: Path, value: object) -> str:
    name = str(path[0])
    if type_ == "extra_forbidden":
        return f"a turn job has no such field{did_you_mean(name, _EXPECTED)}"
    return f"expected {_EXPECTED[name]}, got {'nothing' if type_ == 'missing' else _came(name, value)}"


def _came(name: str, value: object) -> str:
    if not isinstance(value, str):
        return kind(value)
    if not value:
        return "an empty string"
    return f"a string of {_size(value)} bytes" if name == "text" else f"a string of {len(value)} characters"


def _size(text: str) -> int:
    return len(text.encode()) - (len(REPLACEMENT.encode()) - 1) * text.count(REPLACEMENT)


def _fits(text: str) -> str:
    if _size(text) > MAX_TEXT_BYTES:
        raise ValueError
    return text


def _moment(value: object) -> datetime:
    """Raises ValueError for what is not a date-time of RFC 3339, section 5.6. A leap second is the next second."""
    found = _RFC_3339.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    leap = found["second"] == "60"
    second = "59" if leap else found["second"]
    offset = found["offset"].upper()
    moment = datetime.fromisoformat(f"{found['date']}T{found['minute']}:{second}{found['fraction'] or ''}{offset}")
    try:
        return moment.astimezone(UTC) + timedelta(seconds=int(leap))
    except OverflowError:
        raise ValueError from None


_Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_ABSENT: Any = None
"""Stands where a job says nothing. Only absence may: null is a wrong type."""


class _Fields(BaseModel):
    """The job as it stands in JSON."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    session: _Name
    agent: _Name
    text: Annotated[str, StringConstraints(min_length=1), AfterValidator(_fits)]
    id: Annotated[str, StringConstraints(min_length=1, max_length=128)] = _ABSENT
    tenant: _Name = _ABSENT
    customer: _Name = _ABSENT
    channel: _Name = _ABSENT
    recipient: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = _ABSENT
    vars: dict[str, Any] = _ABSENT
    queue_mode: Annotated[QueueMode, Field(strict=False)] = _ABSENT
    origin: Annotated[Origin, Field(strict=False)] = _ABSENT
    sent_at: Annotated[datetime, BeforeValidator(_moment)] = _ABSENT
