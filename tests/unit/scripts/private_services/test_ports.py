"""Ports are free, different, and out of the way of outgoing connections."""

from __future__ import annotations

import socket

import pytest

from scripts.private_services import ports
from scripts.private_services.ports import LOOPBACK, free_ports, is_free


def test_they_are_different_and_below_those_that_systems_give_away():
    found = free_ports(20)
    assert len(set(found)) == 20
    assert all(1_024 <= port < 32_768 for port in found)


def test_one_that_somebody_listens_on_is_not_free():
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        assert not is_free(taken.getsockname()[1])


def test_that_there_is_none_is_an_error(monkeypatch):
    monkeypatch.setattr(ports, "is_free", lambda _: False)
    with pytest.raises(OSError, match="no 3 free ports"):
        free_ports(3)
