"""Which tools an agent may use, by the three lists of its profile.

Names and groups are compared letter for letter: a list that forgave a spelling would let something through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def allowed_tools(
    registered: Iterable[tuple[str, str | None]],
    tools_allow: Sequence[str] | None = None,
    tools_deny: Sequence[str] | None = None,
    tools_allow_groups: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """The names of those `registered` tools, given as (name, group), that the lists let through, in their order.

    None is a list that the profile does not have. Without both allow-lists every tool is allowed; with one of them
    only what it names, so that an empty one alone allows nothing; with both, what either names. What `tools_deny`
    names is never allowed.
    """
    everything = tools_allow is None and tools_allow_groups is None
    names, groups, denied = set(tools_allow or ()), set(tools_allow_groups or ()), set(tools_deny or ())
    return tuple(
        name
        for name, group in registered
        if name not in denied and (everything or name in names or (group is not None and group in groups))
    )
