"""The chat itself: takes a line, hands it in or obeys it, and shows what comes of it.

Typed lines go in while the agent works, and what becomes of them is the queue mode's business. Piped lines go in one
after the other, each once everything before it has been answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import uuid
from collections.abc import Callable, Iterable

from rich.text import Text

from actors.cli.chat.deciding import Questions
from actors.cli.chat.follower import Follower
from actors.cli.chat.lines import ReadLine, next_line
from actors.cli.chat.safe_replies import SafeReplies
from actors.cli.chat.screen import Screen
from actors.cli.chat.thoughts import Heard, Thoughts, nothing_heard
from actors.cli.chat.view import RECEIPTS, ended, note, said
from actors.cli.output import on_one_line, printable
from actors.control import Control
from actors.ingress import Ingress, Kept
from insika.errors import InsikaError
from insika.storage.port import ReadStore, StoreUnavailable
from insika.storage.rows import Accepted, TurnState, Verdict

LOOK_S = 0.05
"""Between two looks into the store."""
SESSION_MAX = 256
LAST_STEP = sys.maxsize

HELP = """\
  Write a message and press enter. While the agent works you may go on writing.
  y, n            let the call run that waits for you, or not
  y ID, n ID      the same, of the call with this id, where several wait
  /session NAME   talk in another conversation
  /help           this text; lines with ~ are what the model thinks, as far as its vendor shows it
  /quit           leave (so does Ctrl-D); what is under way is finished first, or later"""


class Talk:
    """One agent, one session at a time. `failures` counts the messages that got no answer; `decider` is who decides
    about calls that wait for a person; `heard` tells what this process publishes of its turns."""

    def __init__(  # noqa: PLR0917 - the two doors, the store, and for whom
        self,
        ingress: Ingress,
        control: Control,
        store: ReadStore,
        screen: Screen,
        agent: str,
        decider: str,
        heard: Heard = nothing_heard,
    ) -> None:
        self._ingress = ingress
        self._control = control
        self._decider = decider
        self._store = store
        self._screen = screen
        self._agent = agent
        self._follower = Follower(store, "")
        self._heard = heard
        self._thoughts = Thoughts("")
        self._replies = SafeReplies("")
        self._questions = Questions(control, screen, self._follower, decider)
        self._mine: dict[int, Verdict] = {}
        self._answered: set[str] = set()
        self.failures = 0

    async def enter(self, session: str) -> None:
        """Talk in this session from now on. What runs in the one before goes on unseen."""
        follower = Follower(self._store, session)
        await follower.begin()
        await self._tell_left()
        self._follower, self._mine, self._thoughts = follower, {}, Thoughts(session)
        self._replies = SafeReplies(session)
        self._questions = Questions(self._control, self._screen, follower, self._decider)
        known = f"{follower.seen} messages so far" if follower.seen else "new"
        self._screen.show(note(f"session {on_one_line(session)}, {known}"))
        if not follower.quiet:
            self._screen.show(note("a turn is under way, or waits for the lease of a process that ended to run out"))

    async def typed(self, read: ReadLine) -> None:
        """Until the person leaves."""
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._follow(lambda: False))
            while (line := await next_line(read)) is not None and await self._take(line):
                pass
            following.cancel()
        await self._tell_left()

    async def piped(self, read: ReadLine) -> None:
        """Until the lines end and the last is answered."""
        await self._until_quiet()
        while (line := await next_line(read)) is not None:
            if line.strip() and not line.startswith("/"):
                self._screen.show(Text.assemble(("you: ", "bold"), printable(line)))
            if not await self._take(line):
                break
            await self._until_quiet()
        await self._tell_left()

    async def _take(self, line: str) -> bool:
        """False: the person wants to leave."""
        if not line.strip():
            return True
        if not line.startswith("/"):
            if not await self._decides(line):
                await self._say(line)
            return True
        command, _, argument = line.strip().partition(" ")
        name = argument.strip()
        if command == "/quit":
            return False
        if command == "/help":
            self._screen.show(Text(HELP))
        elif command == "/session" and 0 < len(name) <= SESSION_MAX:
            await self.enter(name)
        elif command == "/session":
            self._screen.show(note(f"write /session NAME; a name has 1 to {SESSION_MAX} characters"))
        else:
            self._screen.show(note(f"there is no command {printable(command)}; /help lists those there are"))
        return True

    async def _say(self, text: str) -> None:
        id_ = f"dev-{uuid.uuid4()}"
        job = {"id": id_, "session": self._follower.name, "agent": self._agent, "text": text}
        was_busy = not self._follower.quiet
        try:
            answer = await self._ingress.take(json.dumps(job).encode(), source="dev")
        except StoreUnavailable as error:
            self._fail(f"The message may not have been taken: {error.message}")
            return
        if isinstance(answer, Kept):
            self._fail(f"The message was rejected: {answer.error.message}")
        elif answer.verdict is Verdict.REJECTED:
            self._fail(f"The message was rejected: {answer.reason}")
        else:
            self._taken(answer, was_busy)

    async def _decides(self, line: str) -> bool:
        """Whether this was a word on a call that waits for a person."""
        try:
            return await self._questions.take(line)
        except StoreUnavailable as error:
            self._fail(f"The decision may not have been taken: {error.message}")
            return True

    async def _tell_left(self) -> None:
        with contextlib.suppress(StoreUnavailable):  # nothing hangs on these words
            await self._questions.tell_left()

    def _taken(self, accepted: Accepted, was_busy: bool) -> None:
        if accepted.position is not None:
            self._mine[accepted.position] = accepted.verdict
        self._follower.expect(accepted)
        if was_busy or accepted.verdict is not Verdict.ACCEPTED:
            self._screen.show(note(RECEIPTS[accepted.verdict]))

    async def _until_quiet(self) -> None:
        await self._follow(lambda: self._follower.quiet)

    async def _follow(self, enough: Callable[[], bool]) -> None:
        told_of = ""
        while True:
            trouble = ""
            try:
                await self._show_news()
            except InsikaError as error:
                trouble = f"cannot look into the store: {error.message}"
            if self._follower.paused:
                trouble = f"the session is held; `insika sessions resume {self._follower.name}` lets it go on"
            if trouble and trouble != told_of:
                self._screen.show(note(trouble))
            told_of = trouble
            if enough():
                return
            await asyncio.sleep(LOOK_S)

    async def _show_news(self) -> None:
        follower, thoughts = self._follower, self._thoughts
        self._listen()
        thought = thoughts.last
        news = await follower.look()
        if follower is self._follower:
            self._listen()
        if any(turn.state is TurnState.REFUSED and not self._replies.heard(turn.id) for turn in news.ended):
            await asyncio.sleep(LOOK_S)  # a reply is told right after the write that ends its turn
            if follower is self._follower:
                self._listen()
        if follower is not self._follower:
            return  # the person has gone to another session meanwhile
        self._questions.tell_settled(news.settled)
        for entry in news.entries:
            self._show(thoughts.before((entry.turn_id, entry.step)))
            self._show(said(entry, self._agent, self._mine))
            if entry.message.role == "assistant" and not entry.message.tool_calls:
                self._answered.add(entry.turn_id)
        for turn in news.ended:
            self.failures += turn.state is not TurnState.COMPLETED
            self._show(thoughts.before((turn.id, LAST_STEP)))
            reply = self._replies.take(turn.id)
            self._show(ended(turn, follower.name, answered=self._answered, reply=reply))
            self._answered.discard(turn.id)
        self._show(thoughts.rest(thought))
        self._questions.ask(news.asked)

    def _listen(self) -> None:
        events = self._heard()
        self._thoughts.read(events)
        self._replies.read(events)

    def _show(self, lines: Iterable[Text]) -> None:
        for line in lines:
            self._screen.show(line)

    def _fail(self, why: str) -> None:
        self.failures += 1
        self._screen.show(Text(printable(why), style="red"))
