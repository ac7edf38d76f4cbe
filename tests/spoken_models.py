"""A model that says exactly what a test has written down, event by event, one list for each request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from insika.errors import ProviderError
from insika.messages import Message, Usage, assistant
from insika.ports import Finished, ModelEvent, ModelRequest, Stop
from tests.strict import check_anthropic, check_openai

Spoken = ModelEvent | BaseException | Callable[[], Awaitable[None]]
"""What a stream does next: give an event, break, or wait for something."""


class SpokenModel:
    """`requests` keeps what was asked; a request past the last list is a defect of the test. It refuses a conversation
    as both vendors would. `closed` counts the streams that were closed or ended."""

    def __init__(self, *streams: Sequence[Spoken]) -> None:
        self._streams = list(streams)
        self.requests: list[ModelRequest] = []
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        check_anthropic(request.messages, sent=True)
        check_openai(request.messages, sent=True)
        self.requests.append(request)
        try:
            for said in self._streams.pop(0):
                if isinstance(said, BaseException):
                    raise said
                if callable(said):
                    await said()
                else:
                    yield said
        finally:
            self.closed += 1


def unsent(message: str = "cannot connect") -> ProviderError:
    """A connection that failed before anything of the request had left."""
    return ProviderError(message, sent=False)


def finished(
    message: Message | str = "Done.",
    usage: Usage = Usage(10, 5),  # noqa: B008 - a value
    stop: Stop = Stop.END,
    *,
    measured: bool = True,
) -> Finished:
    return Finished(assistant(message) if isinstance(message, str) else message, usage, stop, measured)
