"""Asks the policies that an agent's profile names whether a turn may begin, after the limits have let it.

In doubt it may not: a policy that nobody here knows, that raises, gives no decision or takes too long denies. The
limits come first, so that a flood reaches no code of the user's; a turn that a policy denies has counted in them.

The profile's list is read as it is when the turn begins. A turn that has begun is not asked about again, also when it
is taken up elsewhere; what it may do is asked at each call (tool lists, approvals).
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Hashable
from typing import Any

import structlog

from actors.admission import Admission, Admissions, Admitted, Applicant, Limited, Refused
from insika.agents.policies import own_policies
from insika.agents.profile import Profile
from insika.documents import canonical_digest
from insika.errors import PolicyDenied
from insika.parsing import did_you_mean
from insika.policy.decision import Allow, Deny
from insika.policy.own import Arrival, Decision, OwnPolicies, OwnPolicy
from insika.text import clean_text, counted, truncate
from insika.tools.threads import Ended, NotStarted, Raised, Returned, ToolThreads

POLICY_S = 5.0
"""Seconds that one policy may take to decide."""
MAX_REASON_BYTES = 1_000
REMEMBERED = 500
"""Turns whose decision is kept: one that was decided and could not be begun at once is not asked about again."""


class PolicedAdmissions:
    """`limits` are asked first. `timeout_s` bounds each policy by itself."""

    def __init__(
        self, limits: Admissions, policies: OwnPolicies, threads: ToolThreads, timeout_s: float = POLICY_S
    ) -> None:
        self._limits = limits
        self._policies = policies
        self._threads = threads
        self._timeout_s = timeout_s
        self._decided: dict[Hashable, PolicyDenied | None] = {}
        self._log = structlog.get_logger("insika.policies")

    async def ask(self, profile: Profile, turn: Applicant) -> Admission:
        admission = await self._limits.ask(profile, turn)
        names = own_policies(profile.policies)
        if not names or not isinstance(admission, Admitted):
            return admission
        denied = await self._denied_once(names, _arrival(profile, turn))
        return admission if denied is None else Refused(denied, admission.warnings)

    async def attempt(self, agent: str, turn: Applicant) -> Limited | Admitted:
        return await self._limits.attempt(agent, turn)

    async def _denied_once(self, names: tuple[str, ...], arrival: Arrival) -> PolicyDenied | None:
        question = (arrival.turn_id, arrival.agent, names, canonical_digest(arrival.texts))
        if question not in self._decided:
            denied = await self._denied(names, arrival)
            if len(self._decided) >= REMEMBERED:
                del self._decided[next(iter(self._decided))]
            self._decided[question] = denied
        return self._decided[question]

    async def _denied(self, names: tuple[str, ...], arrival: Arrival) -> PolicyDenied | None:
        for name in names:
            decision = await self._decision(name, arrival)
            if isinstance(decision, Deny):
                return PolicyDenied(
                    f"policy {name!r} does not let this turn begin: {_reason(decision)}", field="policies"
                )
        return None

    async def _decision(self, name: str, arrival: Arrival) -> Decision:
        policy = self._policies.get(name)
        if policy is None:
            return Deny(
                "no policy of that name is in the modules that INSIKA_TOOLS names here; correct the profile, or have "
                f"each worker load it{did_you_mean(name, self._policies.names)}"
            )
        try:
            ended = await self._run(policy, arrival)
        except NotStarted as why:
            return Deny(f"it could not be asked: {why}")
        except TimeoutError:
            self._log.warning("policy_failed", policy=name, turn_id=arrival.turn_id, error="TimeoutError")
            return Deny(f"it did not decide within {counted(self._timeout_s, 'second')}")
        if isinstance(ended, Raised):
            self._raised(name, arrival, ended.error)
            return Deny(f"it raised {type(ended.error).__name__}; the worker's log says where")
        return _decided(ended.value)

    async def _run(self, policy: OwnPolicy, arrival: Arrival) -> Ended:
        if policy.blocking:
            return await self._threads.run(lambda: policy(arrival), self._timeout_s)
        # A task of its own, so that one which swallows its cancellation cannot hold up the session.
        task = asyncio.create_task(_guarded(policy, arrival))
        try:
            await asyncio.wait({task}, timeout=self._timeout_s)
        finally:
            task.cancel()
        if not task.done():
            raise TimeoutError
        return task.result()

    def _raised(self, name: str, arrival: Arrival, error: BaseException) -> None:
        """Where, but not what: it may quote a person."""
        frames = traceback.extract_tb(error.__traceback__)
        raised_at = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
        told: dict[str, Any] = {"policy": name, "turn_id": arrival.turn_id, "error": type(error).__name__}
        self._log.warning("policy_failed", **told, raised_at=raised_at)


async def _guarded(policy: OwnPolicy, arrival: Arrival) -> Ended:
    try:
        decided = policy(arrival)
        return Returned(await decided if not isinstance(decided, Allow | Deny) else decided)
    except BaseException as error:
        return Raised(error)


def _decided(value: object) -> Decision:
    if isinstance(value, Allow | Deny):
        return value
    return Deny(f"it returned {type(value).__name__}, which is neither Allow() nor Deny(reason)")


def _reason(denied: Deny) -> str:
    said = clean_text(denied.reason) if isinstance(denied.reason, str) else ""
    return truncate(said, MAX_REASON_BYTES).strip() or "it gives no reason"


def _arrival(profile: Profile, turn: Applicant) -> Arrival:
    return Arrival(
        turn.tenant,
        turn.session,
        profile.id,
        turn.turn_id,
        turn.texts,
        turn.channel,
        turn.recipient,
        turn.customer,
        turn.origin,
        turn.now,
    )
