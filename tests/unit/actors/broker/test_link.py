"""Frames as they come from the broker, with headers that pika cannot read."""

from __future__ import annotations

import struct

import pytest
from pika import BasicProperties, frame, spec
from pika.exceptions import InvalidFrameError

from actors.broker.link import HEADERS_UNREADABLE, _Tolerant


def table(kind: str) -> bytes:
    inner = b""
    if kind == "a time long after all times":
        inner = b"\x01t" + b"T" + struct.pack(">Q", 2**60)
    elif kind == "not a number":
        inner = b"\x01t" + b"d" + struct.pack(">d", float("nan"))
    elif kind == "an unknown type":
        inner = b"\x01tZabc"
    elif kind == "tables in tables":
        for _ in range(5_000):
            inner = b"\x01tF" + struct.pack(">I", len(inner)) + inner
    return struct.pack(">I", len(inner)) + inner


KINDS = ["a time long after all times", "not a number", "an unknown type", "tables in tables"]


def content_header(properties: bytes, body_size: int = 5) -> bytes:
    content = struct.pack(">HHQ", spec.Basic.INDEX, 0, body_size) + properties
    return struct.pack(">BHL", spec.FRAME_HEADER, 1, len(content)) + content + bytes([spec.FRAME_END])


def with_headers(headers: bytes) -> bytes:
    """A message with every property that stands before and behind the headers."""
    flags = (
        BasicProperties.FLAG_CONTENT_TYPE
        | BasicProperties.FLAG_CONTENT_ENCODING
        | BasicProperties.FLAG_HEADERS
        | BasicProperties.FLAG_DELIVERY_MODE
        | BasicProperties.FLAG_MESSAGE_ID
    )
    return struct.pack(">H", flags) + b"\x04json" + b"\x05utf-8" + headers + b"\x02" + b"\x03abc"


class Buffer(_Tolerant):
    """Only the part that reads frames."""

    def __init__(self, data: bytes) -> None:
        self._frame_buffer = data


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_with_headers_that_nobody_can_read_comes_without_them(kind: str) -> None:
    data = content_header(with_headers(table(kind)))
    with pytest.raises(Exception):  # noqa: B017 (whatever pika's own reader does: it is not this that is tested)
        frame.decode_frame(data)
    consumed, header = Buffer(data + b"the next frame")._read_frame()

    assert consumed == len(data)
    assert (header.channel_number, header.body_size) == (1, 5)
    properties = header.properties
    assert properties.headers == {HEADERS_UNREADABLE: True}
    assert (properties.content_type, properties.content_encoding, properties.message_id) == ("json", "utf-8", "abc")


def test_headers_that_can_be_read_are_read_as_ever() -> None:
    data = content_header(with_headers(struct.pack(">I", 5) + b"\x03one" + b"V"))
    assert Buffer(data)._read_frame()[1].properties.headers == {"one": None}


@pytest.mark.parametrize("properties", [b"", b"\xff", b"\xff\xfe", struct.pack(">H", 1 << 13) + b"\xff\xff\xff\xff"])
def test_properties_that_are_none_leave_a_message_without_any(properties: bytes) -> None:
    header = Buffer(content_header(properties))._read_frame()[1]
    assert (header.body_size, header.properties.message_id) == (5, None)


def test_half_a_frame_is_waited_for() -> None:
    data = content_header(with_headers(table(KINDS[0])))
    for length in (0, 3, len(data) - 1):
        assert Buffer(data[:length])._read_frame() == (0, None)


def test_what_is_no_frame_is_still_refused() -> None:
    data = content_header(with_headers(table(KINDS[0])))[:-1] + b"\x00"
    with pytest.raises(InvalidFrameError):
        Buffer(data)._read_frame()
