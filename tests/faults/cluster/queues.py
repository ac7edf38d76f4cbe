"""RabbitMQ as the test sees it: what lies in a virtual host's queues, who is connected, and messages of the test's own.

What a node says of a quorum queue by itself is seconds old, so the queue's own state machine is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pika

from actors.broker.topology import SESSIONS, TURNS
from scripts.private_services import RabbitConsole
from tests.amqp_wire import channel

_DEPTHS = """
[begin
   {resource, _, queue, Name} = amqqueue:get_name(Queue),
   {Ready, Unsettled} = case amqqueue:get_type(Queue) of
     rabbit_quorum_queue ->
       {ok, {_, Total}, _} = ra:local_query(amqqueue:get_pid(Queue), fun rabbit_fifo:query_messages_total/1),
       {ok, {_, Waiting}, _} = ra:local_query(amqqueue:get_pid(Queue), fun rabbit_fifo:query_messages_ready/1),
       {Waiting, Total - Waiting};
     _ ->
       [{_, Waiting}, {_, Held}] = rabbit_amqqueue:info(Queue, [messages_ready, messages_unacknowledged]),
       {Waiting, Held}
   end,
   {binary_to_list(Name), Ready, Unsettled}
 end || Queue <- rabbit_amqqueue:list(<<"%s">>)]
"""
_CONNECTIONS = """
[{binary_to_list(Name), pid_to_list(Pid)} ||
 [{_, Pid}, {_, Vhost}, {_, Told}] <- rabbit_networking:connection_info_all([pid, vhost, client_properties]),
 Vhost =:= <<"%s">>, {<<"connection_name">>, _, Name} <- Told]
"""


@dataclass(frozen=True, slots=True)
class Depth:
    """Messages that wait, and messages that somebody holds and has not settled."""

    ready: int
    unsettled: int

    @property
    def total(self) -> int:
        return self.ready + self.unsettled


class Queues:
    def __init__(self, url: str, console: RabbitConsole) -> None:
        self.url = url
        self._console = console
        self._vhost = urlsplit(url).path[1:] or "/"

    def depth(self, queue: str) -> Depth:
        found = re.findall(r'\{"([^"]+)", (\d+), (\d+)\}', self._ask(_DEPTHS))
        return {name: Depth(int(ready), int(held)) for name, ready, held in found}[queue]

    def connections(self) -> set[tuple[str, str]]:
        """Each as its name and the broker's process for it, which no second connection shares."""
        return set(re.findall(r'\{"([^"]+)", "([^"]+)"\}', self._ask(_CONNECTIONS)))

    def wake(self, *session_ids: int) -> None:
        """A hint for each, as any process may give it."""
        self._publish(SESSIONS, ((b"%d" % session_id, pika.BasicProperties()) for session_id in session_ids))

    def publish(self, body: bytes, **properties: Any) -> None:
        """One message as it is, on the queue of jobs; confirmed."""
        self._publish(TURNS, [(body, pika.BasicProperties(delivery_mode=2, **properties))])

    def _publish(self, queue: str, messages: Iterable[tuple[bytes, pika.BasicProperties]]) -> None:
        with channel(self.url) as publishing:
            publishing.confirm_delivery()
            for body, properties in messages:
                publishing.basic_publish("", queue, body, properties, mandatory=True)

    def _ask(self, expression: str) -> str:
        return self._console.evaluate(" ".join((expression % self._vhost).split()))
