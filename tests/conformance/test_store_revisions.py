"""Profiles and settings: immutable revisions, and who has the last word between an operator and a file."""

from __future__ import annotations

import asyncio

import pytest

from insika.storage.port import StoreRefused
from tests.store_world import World

FILE_1, FILE_2 = "file:aaa", "file:bbb"


async def current(world: World, name: str = "shop") -> str | None:
    return {row.name: row.revision for row in await world.store.current_profiles()}.get(name)


async def test_there_is_nothing_before_something_is_applied(world: World) -> None:
    assert await world.store.current_profiles() == ()
    assert await world.store.current_settings() is None
    assert await world.store.profile("r1") is None


async def test_the_newest_applied_revision_is_current_and_the_old_ones_stay(world: World) -> None:
    assert await world.store.apply_profile("shop", "r1", {"id": "shop", "model": "a/1"}, FILE_1)
    world.clock.advance(60)
    assert await world.store.apply_profile("shop", "r2", {"id": "shop", "model": "a/2"}, "operator")
    (row,) = await world.store.current_profiles()
    assert (row.revision, row.name, row.data, row.source) == ("r2", "shop", {"id": "shop", "model": "a/2"}, "operator")
    assert row.at == world.clock.now()
    old = await world.store.profile("r1")
    assert old is not None
    assert old.data == {"id": "shop", "model": "a/1"}


async def test_profiles_are_current_each_by_its_name(world: World) -> None:
    await world.store.apply_profile("b", "rb", {"id": "b"}, "operator")
    await world.store.apply_profile("a", "ra", {"id": "a"}, "operator")
    assert [row.name for row in await world.store.current_profiles()] == ["a", "b"]


async def test_applying_the_same_again_makes_no_difference(world: World) -> None:
    await world.store.apply_profile("shop", "r1", {"id": "shop"}, FILE_1)
    before = await world.everything()
    assert await world.store.apply_profile("shop", "r1", {"id": "shop"}, FILE_1) is False
    assert await world.store.apply_profile("shop", "r1", {"id": "shop"}, "operator") is False
    assert await world.everything() == before


async def test_what_an_operator_changed_stands_until_the_file_changes(world: World) -> None:
    await world.store.apply_profile("shop", "r1", {"n": 1}, FILE_1)
    await world.store.apply_profile("shop", "r2", {"n": 2}, "operator")
    assert await world.store.apply_profile("shop", "r1", {"n": 1}, FILE_1) is False
    assert await current(world) == "r2"
    assert await world.store.apply_profile("shop", "r3", {"n": 3}, FILE_2)
    assert await current(world) == "r3"


async def test_an_operator_may_go_back_to_an_old_revision(world: World) -> None:
    await world.store.apply_profile("shop", "r1", {"n": 1}, FILE_1)
    await world.store.apply_profile("shop", "r2", {"n": 2}, FILE_2)
    assert await world.store.apply_profile("shop", "r1", {"n": 1}, "operator")
    assert await current(world) == "r1"
    assert await world.store.apply_profile("shop", "r2", {"n": 2}, FILE_2) is False
    assert await current(world) == "r1"


async def test_a_file_that_goes_back_to_what_it_was_has_changed(world: World) -> None:
    await world.store.apply_profile("shop", "r1", {"n": 1}, FILE_1)
    await world.store.apply_profile("shop", "r2", {"n": 2}, FILE_2)
    assert await world.store.apply_profile("shop", "r1", {"n": 1}, FILE_1)
    assert await current(world) == "r1"


async def test_a_file_that_only_caught_up_with_the_operator_has_changed_too(world: World) -> None:
    await world.store.apply_profile("shop", "r1", {"n": 1}, FILE_1)
    await world.store.apply_profile("shop", "r2", {"n": 2}, "operator")
    assert await world.store.apply_profile("shop", "r2", {"n": 2}, FILE_2) is False
    await world.store.apply_profile("shop", "r3", {"n": 3}, "operator")
    assert await world.store.apply_profile("shop", "r2", {"n": 2}, FILE_2) is False
    assert await current(world) == "r3"
    assert await world.store.apply_profile("shop", "r1", {"n": 1}, FILE_1)
    assert await current(world) == "r1"


async def test_a_revision_is_immutable(world: World) -> None:
    await world.store.apply_profile("shop", "r1", {"n": 1}, FILE_1)
    await world.store.apply_profile("shop", "r2", {"n": 2}, FILE_2)
    before = await world.everything()
    with pytest.raises(StoreRefused, match="immutable"):
        await world.store.apply_profile("shop", "r1", {"n": 9}, "operator")
    with pytest.raises(StoreRefused, match="immutable"):
        await world.store.apply_profile("other", "r1", {"n": 1}, "operator")
    assert await world.everything() == before


async def test_settings_follow_the_same_rules(world: World) -> None:
    assert await world.store.apply_settings("s1", {"edge": {"chat_rate_limit": 20}}, FILE_1)
    assert await world.store.apply_settings("s2", {"edge": {"chat_rate_limit": None}}, "operator")
    assert await world.store.apply_settings("s1", {"edge": {"chat_rate_limit": 20}}, FILE_1) is False
    settings = await world.store.current_settings()
    assert settings is not None
    assert (settings.revision, settings.source) == ("s2", "operator")
    assert settings.data == {"edge": {"chat_rate_limit": None}}
    assert await world.store.apply_settings("s3", {}, FILE_2)
    settings = await world.store.current_settings()
    assert settings is not None
    assert (settings.revision, settings.data) == ("s3", {})


async def test_profiles_and_settings_do_not_mix(world: World) -> None:
    await world.store.apply_profile("", "same", {"id": ""}, "operator")
    assert await world.store.current_settings() is None
    await world.store.apply_settings("same", {"x": 1}, "operator")
    (row,) = await world.store.current_profiles()
    assert row.data == {"id": ""}


async def test_processes_that_apply_the_same_file_at_once_make_one_difference(world: World) -> None:
    applied = await asyncio.gather(*(world.store.apply_profile("shop", "r1", {"n": 1}, "file:a") for _ in range(12)))
    assert sorted(applied) == [False] * 11 + [True]
    assert [row["revision"] for row in await world.peek("SELECT revision FROM applied_revisions")] == ["r1"]
