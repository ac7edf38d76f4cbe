from __future__ import annotations

import threading

from actors.broker.gate import Gate


def test_a_listener_hears_of_changes_and_only_of_those() -> None:
    gate, heard = Gate(), list[bool]()
    gate.listen(lambda: heard.append(gate.is_open))
    gate.open()
    gate.close()
    gate.close()
    gate.set(True)
    assert heard == [False, True]
    assert gate.is_open


def test_a_gate_may_begin_closed() -> None:
    assert not Gate(is_open=False).is_open


def test_whatever_threads_do_to_it_the_last_one_told_knows_how_it_stands() -> None:
    gate, told = Gate(), list[bool]()
    gate.listen(lambda: told.append(gate.is_open))
    threads = [threading.Thread(target=lambda: [gate.set(bool(n % 2)) for n in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told[-1] == gate.is_open
