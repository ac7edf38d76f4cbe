from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from insika.messages import Halt, assistant, tool_result, user
from insika.turn.tool_batch import ToolBatch
from tests.turn_doubles import announce

BETWEEN = st.lists(st.sampled_from([user("more"), assistant("thinking aloud"), tool_result("stray", "")]), max_size=3)
BATCHES = st.lists(st.tuples(BETWEEN, st.lists(st.booleans(), min_size=1, max_size=8)), max_size=8)


@given(BATCHES)
def test_exactly_the_last_result_of_each_batch_closes_it_whatever_stands_between(batches):
    tools = ToolBatch()
    for between, halting in batches:
        assert not any(tools.closed(message) for message in between)
        assert not tools.closed(announce(len(halting)))
        assert not tools.halted
        closings = []
        for index, halts in enumerate(halting):
            tools.halt(Halt() if halts else "found")
            closings.append(tools.closed(tool_result(f"c{index}", "")))
        assert closings == [False] * (len(halting) - 1) + [True]
        assert tools.halted == any(halting)


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.randoms())
def test_results_may_be_known_in_any_order_before_they_become_messages(halting, random):
    tools = ToolBatch()
    tools.closed(announce(len(halting)))
    returned = list(halting)
    random.shuffle(returned)
    for halts in returned:
        tools.halt(Halt() if halts else None)
    closings = [tools.closed(tool_result("c", "")) for _ in halting]
    assert closings.count(True) == 1
    assert tools.halted == any(halting)
