"""`insika dev` as people use it: piped, killed in the middle, stopped by a signal, left alone, twice on one file."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import SIGINT, SIGKILL, SIGTERM, Folder, folder, wait_for

LEASE_S = "1.5"

# The tools of a bookshop that hang until a file says `go`, and write down each run first.
TOOLS = """
import pathlib, time
from insika.tools.python_tools import tool

HERE = pathlib.Path(__file__).parent

def hang(name):
    with (HERE / "runs").open("a") as file:
        file.write(name + chr(10))
    while not (HERE / f"go-{name}").exists():
        time.sleep(0.02)

@tool
def order_lookup(order_id: str) -> dict:
    hang("order_lookup")
    return {"order_id": order_id, "found": True, "title": "Evening Birds", "status": "on its way"}

@tool(side_effect=True)
def refund(order_id: str) -> dict:
    hang("refund")
    return {"order_id": order_id, "amount": "10.90 EUR"}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Folder]:
    with folder(tmp_path, INSIKA_LEASE_S=LEASE_S, INSIKA_DRAIN_S="1") as made:
        yield made


@pytest.fixture
def hanging_shop(shop: Folder) -> Folder:
    shop.write("shop_tools.py", TOOLS)
    shop.environment["INSIKA_TOOLS"] = "shop_tools.py"
    return shop


def runs(shop: Folder) -> list[str]:
    file = shop.path / "runs"
    return file.read_text().split() if file.exists() else []


def test_piped_lines_are_answered_in_order_and_the_chat_ends(shop: Folder) -> None:
    done = shop.insika("dev", input="where is order 1234?\n\ndo you have Evening Birds?\nwhat are you?\n")
    assert done.code == 0, done
    assert "not a language model" in done.out
    first = done.out.index("demo: Order 1234")
    second = done.out.index("of Evening Birds.")
    third = done.out.index("demo: Hello! This is the bookshop's sample agent: a script")
    assert first < second < third
    assert "· order_lookup" in done.out
    assert done.err == ""


def test_a_conversation_goes_on_where_it_was_left(shop: Folder) -> None:
    assert shop.insika("dev", input="where is order 1234?\n").code == 0
    again = shop.insika("dev", input="/session other\nwhat are you?\n/quit\nnever read\n")
    assert again.code == 0
    assert "session dev, 4 messages so far" in again.out
    assert "session other, new" in again.out
    assert "never read" not in again.out
    listed = {row["session"]: row["message_count"] for row in shop.must("sessions", "list", "--json").json}
    assert listed == {"dev": 4, "other": 2}


def test_a_budget_notice_is_shown_apart_from_the_answer(shop: Folder) -> None:
    done = shop.insika("dev", input="research the catalogue\n")
    assert done.code == 0
    notice = next(line for line in done.out.splitlines() if line.startswith("notice: "))
    assert "20 tool calls" in notice
    assert "[insika]" not in done.out
    assert done.out.count("demo: ") == 1


def test_a_message_that_cannot_be_taken_makes_the_chat_fail_and_the_next_is_answered(shop: Folder) -> None:
    done = shop.insika("dev", input="x" * 70_000 + "\nwhere is order 1234?\n")
    assert done.code == 1
    assert "rejected: text: " in done.out
    assert "demo: Order 1234" in done.out


def test_an_agent_that_does_not_exist_is_named(shop: Folder) -> None:
    done = shop.insika("dev", "--agent", "nobody", input="hello\n")
    assert (done.code, done.err) == (1, "Error: there is no agent 'nobody'; there are: demo\n")


def test_a_turn_that_was_killed_is_finished_by_the_next_process(hanging_shop: Folder) -> None:
    first = hanging_shop.start("dev")
    first.type("refund order 1234")
    wait_for(lambda: runs(hanging_shop) == ["order_lookup"], "the first tool's run")
    hanging_shop.write("go-order_lookup", "")
    wait_for(lambda: runs(hanging_shop) == ["order_lookup", "refund"], "the refund's run")
    assert first.signal(SIGKILL) == -SIGKILL
    hanging_shop.write("go-refund", "")

    second = hanging_shop.insika("dev", input="where is order 1234?\n")
    assert second.code == 0, second
    assert "a turn is under way" in second.out
    assert second.out.index("demo: Order 1234 (Evening Birds) is on its way. refund gave no clear answer") < (
        second.out.index("you: where is order 1234?")
    )
    assert runs(hanging_shop) == ["order_lookup", "refund", "order_lookup"]
    shown = hanging_shop.must("sessions", "show", "dev", "--json").json
    assert [turn["state"] for turn in shown["turns"]] == ["completed", "completed"]
    calls = hanging_shop.must("turns", "show", shown["turns"][0]["turn_id"], "--json").json["calls"]
    assert [(call["tool"], call["state"]) for call in calls] == [("order_lookup", "done"), ("refund", "unknown")]


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_a_signal_in_the_middle_of_a_turn_ends_the_chat_and_the_turn_goes_on_later(
    hanging_shop: Folder, number: int
) -> None:
    first = hanging_shop.start("dev")
    first.type("where is order 1234?")
    wait_for(lambda: runs(hanging_shop), "the tool's run")
    hanging_shop.write("go-order_lookup", "")
    assert first.signal(number) == 0
    assert "Traceback" not in first.printed
    assert "a turn that is cut short goes on when a process runs next" in first.printed
    second = hanging_shop.insika("dev", input="")
    assert second.code == 0, second
    shown = hanging_shop.must("sessions", "show", "dev", "--json").json
    assert [turn["state"] for turn in shown["turns"]] == ["completed"]
    assert runs(hanging_shop) == ["order_lookup"]


def test_without_a_terminal_or_a_pipe_it_works_until_it_is_told_to_stop(shop: Folder) -> None:
    worker = shop.start("dev", stdin=subprocess.DEVNULL)
    worker.until("Working on insika.db")
    sent = shop.must("send", "--session", "ana", "--agent", "demo", "where is order 1234?", "--json").json
    wait_for(lambda: state(shop, sent["turn_id"]) == "completed", "the answer")
    assert worker.signal(SIGTERM) == 0
    assert worker.printed.count('"event": "turn_completed"') == 1


def test_lines_typed_while_the_agent_works_join_its_turn(hanging_shop: Folder) -> None:
    chat = hanging_shop.start("dev")
    chat.type("where is order 1234?")
    wait_for(lambda: runs(hanging_shop), "the tool's run")
    sent = hanging_shop.must("send", "--session", "dev", "--agent", "demo", "I meant order 1235", "--json").json
    assert sent["verdict"] == "steered"
    hanging_shop.write("go-order_lookup", "")
    chat.until("demo: Order 1235")
    assert "someone: I meant order 1235" in chat.printed
    chat.end_of_input()
    assert chat.wait() == 0
    shown = hanging_shop.must("sessions", "show", "dev", "--json").json
    assert [row["verdict"] for row in shown["mail"]] == ["accepted", "steered"]
    assert {row["consumed_by"] for row in shown["mail"]} == {shown["turns"][0]["turn_id"]}


def test_two_processes_on_one_file_answer_everything_once(shop: Folder) -> None:
    assert shop.insika("dev", input="").code == 0
    workers = [shop.start("dev", "--session", f"w{n}") for n in range(2)]
    for worker in workers:
        worker.until("session w")
    for n in range(6):
        shop.must("send", "--session", f"s{n % 2}", "--agent", "demo", "--mode", "followup", f"where is order 12{n}1?")
    wait_for(
        lambda: all(row["waiting"] == 0 and not row["turn_id"] for row in shop.must("sessions", "list", "--json").json),
        "six answers",
    )
    for worker in workers:
        worker.end_of_input()
        assert worker.wait() == 0
    for name in ("s0", "s1"):
        shown = shop.must("sessions", "show", name, "--json").json
        assert [row["ended"] for row in shown["mail"]] == ["turn"] * 3
        assert len([m for m in shown["messages"] if m["by"] == "agent" and not m["tool_calls"]]) == 3


def state(shop: Folder, turn_id: str) -> str:
    return str(shop.must("turns", "show", turn_id, "--json").json["state"])


CAREFUL = "id: shop\nmodel: offline/demo\napprovals_required: [refund]\n"


def test_a_call_that_waits_for_a_person_is_decided_in_the_chat(shop: Folder) -> None:
    shop.must("migrate")
    shop.must("agents", "apply", str(shop.write("shop.yaml", CAREFUL)))
    done = shop.insika("dev", input="refund order 1234\ny\nrefund order 1235\nno\nyes\n")
    assert done.code == 0, done
    assert 'May refund {"order_id": "1234"} run? Write y or n, within 59 min' in done.out
    assert re.search(r'\[approved: refund \{"order_id": "1234"\} \(question \w{8}\)\]\nshop: ', done.out)
    assert '[rejected: refund {"order_id": "1235"} (question ' in done.out
    rows = shop.must("approvals", "list", "--all", "--json").json
    assert [(row["arguments"]["order_id"], row["decision"]) for row in rows] == [
        ("1235", "rejected"),
        ("1234", "approved"),
    ]
    said = [
        row["content"] for row in shop.must("sessions", "show", "dev", "--json").json["messages"] if row["position"]
    ]
    assert said[-1] == "yes", "with nothing to decide it is a message like any other"


def test_a_chat_ends_while_a_call_waits_and_another_decides_about_it(shop: Folder) -> None:
    shop.must("migrate")
    shop.must("agents", "apply", str(shop.write("shop.yaml", CAREFUL)))
    left = shop.insika("dev", input="refund order 1234\nwhere is order 1235?\n")
    assert left.code == 0
    (row,) = shop.must("approvals", "list", "--json").json
    told = rf"waits for a person, 59 min .* left: insika approvals approve {row['approval_id']} \(or reject\)\]\n"
    assert re.search(told, left.out)
    shop.must("approvals", "approve", row["approval_id"])
    done = shop.insika("dev", input="\n")
    assert done.code == 0, done
    assert done.out.index("1234") < done.out.index("Order 1235")
