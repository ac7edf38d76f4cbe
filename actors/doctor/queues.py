"""Whether RabbitMQ has the queues as this version declares them, who reads each, and whether anything is stuck there.

RabbitMQ counts readers, not processes, and a worker without a free slot does not read: so nobody reading is a fault
only where something waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from actors.broker.inspection import BrokerFacts, QueueFacts
from actors.broker.topology import DEAD, EXCHANGE, OUTBOX, SESSIONS, TURNS
from actors.doctor.finding import Finding, fail, ok, warn
from actors.doctor.versions import RABBITMQ, new_enough
from insika.storage.inspection import DeliveryFacts, SessionFacts
from insika.text import counted

BROKER = "rabbitmq"
ABOUT = "queues"
MANY = 1_000
"""Jobs that are not taken at once by one ingress, which takes some hundreds a second."""

_STARTS = {TURNS: "insika ingress", DEAD: "insika ingress", SESSIONS: "insika worker", OUTBOX: "insika outbox"}


def judged(broker: BrokerFacts, sessions: SessionFacts | None, deliveries: DeliveryFacts | None) -> Iterator[Finding]:
    """What the database says of sessions and deliveries tells whether those queues are waited for; None: unknown."""
    yield ok(BROKER, f"RabbitMQ answers at {broker.name}.")
    yield new_enough(BROKER, "RabbitMQ", broker.version, RABBITMQ)
    queues = {name: queue for name, queue in broker.queues.items() if queue is not None}
    missing = [name for name in broker.queues if name not in queues]
    if broker.exchange is None and queues:
        missing.append(f"the exchange {EXCHANGE}")
    elif broker.exchange:
        yield fail(ABOUT, f"The exchange {EXCHANGE} is not as this version declares it.", broker.exchange)
    if missing:
        yield _missing(missing, all_of_them=not queues)
    for name, queue in queues.items():
        if queue.differs:
            yield fail(ABOUT, f"{name} is not as this version declares it, and no process starts.", queue.differs)
    if TURNS in queues:
        yield _turns(queues[TURNS])
    if SESSIONS in queues:
        yield _sessions(queues[SESSIONS], sessions)
    if OUTBOX in queues:
        yield _outbox(queues[OUTBOX], deliveries)
    if DEAD in queues and queues[DEAD].messages:
        yield _dead(queues[DEAD])


def _missing(names: list[str], *, all_of_them: bool) -> Finding:
    if all_of_them:
        what = "There are no queues yet, and what producers publish has nowhere to go."
        return warn(ABOUT, what, "Start a process (insika ingress, worker, outbox or clock): each makes them.")
    return fail(ABOUT, f"{', '.join(names)} is missing.", "Start a process again: each makes what is missing.")


def _turns(queue: QueueFacts) -> Finding:
    waiting = counted(queue.messages, "job")
    if not queue.readers:
        return _nobody(TURNS, waiting if queue.messages else "")
    stand_by = f" ({queue.readers - 1} more stand by)" if queue.readers > 1 else ""
    if queue.messages > MANY:
        do = "See in its log whether the database is slow or away; it takes jobs one after the other, in order."
        return warn(ABOUT, f"{TURNS} is read by one ingress{stand_by}, and {waiting} wait there.", do)
    return ok(ABOUT, f"{TURNS} is read by one ingress{stand_by}; {waiting} there.")


def _sessions(queue: QueueFacts, sessions: SessionFacts | None) -> Finding:
    if queue.readers > 1:
        return ok(ABOUT, f"{SESSIONS} is read by {queue.readers} workers.")
    if queue.readers == 1:
        what = f"{SESSIONS} is read by one worker."
        return warn(ABOUT, what, "Start another, on another machine if you can: it takes over when this one dies.")
    if sessions is not None and sessions.owned:
        what = f"Nobody reads {SESSIONS}, while {counted(sessions.owned, 'session')} run: no worker has a free slot."
        return warn(ABOUT, what, "Start another worker, or raise INSIKA_SLOTS.")
    overdue = sessions.overdue if sessions is not None else 0
    return _nobody(SESSIONS, counted(overdue, "session") if overdue else "")


def _outbox(queue: QueueFacts, deliveries: DeliveryFacts | None) -> Finding:
    if queue.readers:
        return ok(ABOUT, f"{OUTBOX} is read by {queue.readers} of `insika outbox`.")
    overdue = deliveries.overdue if deliveries is not None else 0
    return _nobody(OUTBOX, counted(overdue, "answer") if overdue else "")


def _dead(queue: QueueFacts) -> Finding:
    what = f"{counted(queue.messages, 'message')} that RabbitMQ took off {TURNS} wait in {DEAD}."
    if queue.readers:
        return warn(ABOUT, what, "They are kept aside as they are read; see: insika rejected list")
    return fail(ABOUT, what, "Start `insika ingress`, which keeps them in the database; then: insika rejected list")


def _nobody(name: str, waiting: str) -> Finding:
    do = f"Start `{_STARTS[name]}`."
    if waiting:
        return fail(ABOUT, f"Nobody reads {name}, and {waiting} wait for it.", do)
    return warn(ABOUT, f"Nobody reads {name}.", do)
