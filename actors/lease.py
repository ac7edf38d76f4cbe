"""A session's lease as its owner holds it, and the thread that keeps this process's leases alive.

The store decides who may write; this decides who may *start* something in the world. A lease is good until the moment
its last successful renewal was *sent*, plus its length, minus a margin: an owner that was paused or cut off finds out
here before it reaches out, without asking anybody.

Renewal runs on a thread and a connection of its own, so that neither a busy loop nor a slow statement can starve it.
For the same reason it must stop by itself when the loop has stopped: a process that does nothing any more must lose
its sessions to one that does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from insika.clock import Clock
from insika.errors import LeaseLost
from insika.storage.operations import Fence
from insika.storage.port import LeaseRenewal, StoreBusy, StoreUnavailable
from insika.storage.rows import Claim

MARGIN = 0.1
"""Share of the lease that is given up so that a start just before its end is still well within it."""
RENEWALS_PER_LEASE = 3
LOOP_STOPPED_AFTER_LEASES = 2


class LeaseRanOut(LeaseLost):
    """It was not renewed in time. Whether another worker has taken the session, only the store can say."""


class Outage:
    """Remembers that the store was away. Leases run out while nobody can renew them, so for one lease's time after
    that their owners, who live, get the chance to say so: nothing expired is taken. Called from any thread."""

    def __init__(self, lease_s: float, clock: Clock) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._until = 0.0

    def noticed(self, error: StoreUnavailable) -> None:
        """The store did not answer just now; unless it was not even asked."""
        if isinstance(error, StoreBusy):
            return
        self._until = self._clock.monotonic() + self._lease_s

    @property
    def just_over(self) -> bool:
        """Less than a lease ago somebody here got no answer."""
        return self._clock.monotonic() < self._until


class Lease:
    """One session's lease. Read by the loop's thread, extended by the keeper's; each write is one assignment.

    `urgent_seq` is the session's as the last renewal found it; None before the first."""

    def __init__(self, claim: Claim, lease_s: float, sent_at: float, clock: Clock) -> None:
        self.fence = Fence(claim.session_id, claim.lease_id)
        self.epoch = claim.epoch
        self.deaths = claim.deaths
        self.length_s = lease_s
        self._clock = clock
        self._good_until = 0.0
        self.urgent_seq: int | None = None
        self.renewed(sent_at)

    def renewed(self, sent_at: float) -> None:
        """The store extended it, by a statement sent at that moment of the boot clock."""
        self._good_until = sent_at + self.length_s * (1 - MARGIN)

    @property
    def good(self) -> bool:
        """Nobody else can have the session yet."""
        return self._clock.monotonic() < self._good_until

    def may_start(self) -> None:
        """Raises LeaseRanOut once the lease may have ended."""
        if not self.good:
            raise LeaseRanOut("the lease was not renewed in time; another worker may have this session")


class LeaseKeeper:
    """Renews every lease that this process holds, a few times within each lease's length.

    `urgent` is told of each session in which a renewal found urgent mail that the renewal before it had not. It is
    called from the keeper's thread, and must neither block nor raise: this is how an owner learns of an interrupt or
    a cancel when no signal reaches it."""

    def __init__(
        self,
        renewal: LeaseRenewal,
        lease_s: float,
        clock: Clock,
        urgent: Callable[[int], None] = lambda session_id: None,
    ) -> None:
        self._urgent = urgent
        self._renewal = renewal
        self._lease_s = lease_s
        self._clock = clock
        self.outage = Outage(lease_s, clock)
        self._held: dict[str, Lease] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._loop_seen_at = clock.monotonic()
        self._thread = threading.Thread(target=self._run, name="insika-leases", daemon=True)
        self._log = structlog.get_logger("insika.leases")

    @property
    def lease_s(self) -> float:
        return self._lease_s

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._renewal.close()

    def hold(self, claim: Claim, sent_at: float) -> Lease:
        lease = Lease(claim, self._lease_s, sent_at, self._clock)
        with self._lock:
            self._held[claim.lease_id] = lease
        return lease

    def drop(self, lease: Lease) -> None:
        with self._lock:
            self._held.pop(lease.fence.lease_id, None)

    def loop_ticked(self) -> None:
        """The event loop is alive. Called by it several times within a lease."""
        self._loop_seen_at = self._clock.monotonic()

    def renew_once(self) -> None:
        """Renew what is held, unless the loop has been silent for too long. Raises StoreUnavailable."""
        if self._clock.monotonic() - self._loop_seen_at > LOOP_STOPPED_AFTER_LEASES * self._lease_s:
            return
        with self._lock:
            held = dict(self._held)
        if not held:
            return
        sent_at = self._clock.monotonic()
        try:
            still_ours = self._renewal.renew([lease.fence for lease in held.values()], self._lease_s)
        except StoreUnavailable as error:
            self.outage.noticed(error)
            raise
        for lease_id, urgent_seq in still_ours.items():
            lease = held[lease_id]
            lease.renewed(sent_at)
            if lease.urgent_seq is None or urgent_seq > lease.urgent_seq:
                # Also at the first renewal: what came between the claim and now may be urgent, and looking is cheap.
                lease.urgent_seq = urgent_seq
                if urgent_seq > 0:
                    self._urgent(lease.fence.session_id)

    def _run(self) -> None:
        while not self._stop.wait(self._lease_s / RENEWALS_PER_LEASE):
            try:
                self.renew_once()
            except StoreUnavailable as error:
                self._log.warning("leases not renewed", reason=error.message)
            except Exception:
                # Unforeseen, but a thread that ended would cost this process every lease it holds or will hold.
                self._log.exception("leases not renewed")
