"""A receiver, and the lives of processes over one folder, one after the other, all within this process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from actors.receiver import Received
from insika.events import Event
from tests.faults.lives import OUTLIVES_EVERYTHING_S, Death, Work, clock_of_now, live
from tests.faults.scenes import MUST_FAIL, send, story, tell
from tests.faults.shop import OWN_SCRIPT, Asked, configured
from tests.faults.verdict import Evidence, delivering, judge, uncertain


class Town:
    """`agent` is who the story is told to, `asked` who speaks for it; `received` is what has arrived at `url`."""

    def __init__(
        self, folder: Path, url: str, received: Sequence[Received], agent: str, asked: Asked = OWN_SCRIPT
    ) -> None:
        self.folder, self.received, self.agent = folder, received, agent
        self.environment = configured(folder, url, asked=asked)
        self.clock = clock_of_now()
        self.deaths = 0
        self.maybe_posted: set[str] = set()

    async def first_life(self, death: Death) -> None:
        await self.life(death, lambda insika, gates: tell(insika, gates, self.agent), gates_held=True)

    async def next_life(self, death: Death | None = None) -> list[Event]:
        self.clock.advance(OUTLIVES_EVERYTHING_S)
        return await self.life(death or Death(), lambda insika, _: send(insika, story(self.agent)))

    async def life(self, death: Death, work: Work, **how: Any) -> list[Event]:
        events = await live(self.folder, self.environment, work, clock=self.clock, death=death, **how)
        if death.came.is_set():
            self.deaths += 1
            self.maybe_posted |= delivering(self.folder / "insika.db")
        return events

    def judge(self, jobs: Sequence[Mapping[str, Any]] | None = None, failures: Collection[str] = MUST_FAIL) -> Evidence:
        evidence = Evidence.gathered(self.folder, self.received)
        judge(evidence, jobs or story(self.agent), gone=self.deaths, failures=failures)
        assert uncertain(evidence) == self.maybe_posted
        return evidence
