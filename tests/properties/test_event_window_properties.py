"""The window over the newest entries answers as the whole list would, as far back as it says it reaches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from insika.coordination.redis.entries import Entry
from insika.coordination.redis.window import Window

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.integers(1, 5), max_size=12)),
        st.tuples(st.just("again"), st.integers(0, 10)),
        st.tuples(st.just("begin"), st.integers(0, 5)),
    ),
    max_size=25,
)


@given(bound=st.integers(1, 8), steps=STEPS, back=st.integers(0, 60), limit=st.integers(1, 20))
def test_it_answers_as_the_whole_list_would(bound, steps, back, limit):
    window, known, begun = Window(bound), [], 0
    for step, value in steps:
        if step == "add":
            number = window.ends
            new = []
            for gap in value:
                number += gap
                new.append(Entry(number, None, None))
            window.add(new)
            known.extend(new)
        elif step == "again":
            window.add(known[len(known) - value :])
        else:
            begun = window.ends + value
            window.begin(begun)
            known = []
    assert begun <= window.begins <= window.ends
    assert window.ends == (known[-1].seq if known else begun)
    seq = max(window.ends - back, 0)
    expected = [entry for entry in known if entry.seq > seq]
    if seq >= window.begins:
        assert list(window.after(seq, limit) or ()) == expected[:limit]
    else:
        assert window.after(seq, limit) is None
    within = [entry for entry in known if entry.seq > window.begins]
    assert min(bound, len(known)) <= len(within) <= 2 * bound
