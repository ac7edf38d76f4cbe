"""Makes tools of descriptions: checked calls go out as one request each, and their answers come back as results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from insika.documents import canonical_digest, dotted
from insika.http_tools.argument_schema import ArgumentSchema
from insika.http_tools.description import HttpTool
from insika.messages import Halt
from insika.tools.arguments import bounded
from insika.tools.egress_session import CONNECT_S
from insika.tools.http.answer import AnswerReader
from insika.tools.http.request import RequestTemplate
from insika.tools.http.secrets import SecretHeaders
from insika.tools.http.sending import Sender
from insika.tools.tool import InvalidArguments, Tool, ToolContext

_OF_ITS_TIME = 0.9
"""So much of a tool's own time may its connection take: at the end of it, it is still certain that nothing was sent."""


def http_tool(description: HttpTool, origin: str, sender: Sender, variables: Mapping[str, str]) -> Tool:
    """The tool that `description` describes. `origin` says where that stands; `variables` are those of the environment,
    read at each call and never shown."""
    call = _Call(description, sender, variables)
    return Tool(
        name=description.name,
        description=description.description,
        parameters=call.schema.told,
        bind=call.bind,
        invoke=call.invoke,
        group=description.group,
        side_effect=description.changes_the_world,
        idempotent=description.idempotent,
        repeatable=description.repeatable,
        timeout_s=description.request.timeout,
        definition=canonical_digest(description.model_dump(mode="json")),
        origin=origin,
    )


class _Call:
    def __init__(self, description: HttpTool, sender: Sender, variables: Mapping[str, str]) -> None:
        self.schema = ArgumentSchema(description.parameters)
        self._request = RequestTemplate(description.request)
        self._secrets = SecretHeaders(description.secret_headers, variables)
        self._reader = AnswerReader(description.response, description.halt_when)
        self._max_bytes = description.response.max_bytes
        self._connect_s = min(CONNECT_S, (description.request.timeout or CONNECT_S) * _OF_ITS_TIME)
        self._sender = sender

    def bind(self, arguments: Mapping[str, Any], /) -> Mapping[str, Any]:
        """The arguments with their defaults. Raises InvalidArguments."""
        wrong = [(dotted(path), why) for path, why in self.schema.problems(arguments)]
        completed = self.schema.completed(arguments)
        if wrong := wrong or list(self._request.problems(completed)):
            raise InvalidArguments(bounded(wrong))
        return completed

    async def invoke(self, bound: Mapping[str, Any], context: ToolContext, /) -> str | Halt:
        """Raises ToolError or OutcomeUnknown."""
        request = self._request.filled(bound, context, self._secrets.filled())
        answer = await self._sender.send(request, self._max_bytes, self._connect_s)
        return self._reader.read(answer, self._secrets.hidden)
