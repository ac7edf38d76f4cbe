"""No Redis at all: everything is done, each process says once that it is degraded, and an interrupt is honoured by the
next renewal of the lease."""

from __future__ import annotations

import dataclasses

from scripts.private_services.ports import free_ports
from tests.faults.cluster.member import until
from tests.faults.shop import job

LEASE_S = 6
RENEWED_US = LEASE_S * 1_000_000 // 3
BUSY_US = 10_000_000
"""What a busy machine may add. What it took on this one is printed (pytest -rP)."""
STREAMS = job("ana", "ana-1", "A: charge ~ model")
INTERRUPTS = job("ana", "ana-2", "B: letter", queue_mode="interrupt")
OTHERS = [job("ben", "ben-1", "C: charge look_up@held | letter"), job("ben", "ben-2", "D: charge")]


async def test_everything_is_done_all_the_same(cluster):
    closed = f"redis://127.0.0.1:{free_ports(1)[0]}/0"
    cluster.services = dataclasses.replace(cluster.services, redis=closed)
    cluster.variables["INSIKA_LEASE_S"] = str(LEASE_S)
    members = [cluster.start(role) for role in ("ingress", "outbox", "clock")]
    members += [cluster.start("worker", composed={}) for _ in range(2)]
    for member in members:
        await member.ready()
    await cluster.publish(STREAMS, *OTHERS)
    await until(lambda: len(cluster.diary("request", text=STREAMS["text"])) == 2, "the model to talk")
    await cluster.publish(INTERRUPTS)
    await until(lambda: cluster.turns("ana")[0]["state"] == "cancelled", "the turn to be cut")
    cut_at, said_at = cluster.turns("ana")[0]["ended_at"], cluster.turns("ana")[1]["created_at"]
    print(f"cut {(cut_at - said_at) / 1e6:.2f} s after the interrupt; leases are renewed every {RENEWED_US / 1e6:g} s")
    assert cut_at - said_at <= RENEWED_US + BUSY_US
    cluster.gates.open("held")
    jobs = [STREAMS, INTERRUPTS, *OTHERS]
    await cluster.settles(len(jobs))
    cluster.judge(jobs)
    assert {turn["state"] for turn in cluster.turns("ben")} == {"completed"}
    for member in members:
        await member.logs("coordination_degraded")
        assert len(member.logged("coordination_degraded")) == 1
