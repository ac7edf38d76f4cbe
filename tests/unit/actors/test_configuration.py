from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from actors.configuration import Configuration, file_source
from insika.agents.profile import load_profile
from insika.clock import ManualClock
from insika.errors import InvalidConfiguration
from insika.settings import load_settings
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore


@pytest.fixture
async def store(tmp_path: Path):
    clock = ManualClock()
    migrate(tmp_path / "insika.db", clock.now)
    store = SqliteStore.open(tmp_path / "insika.db", clock.now)
    yield store
    await store.close()


def an_agent(id: str = "shop", **values):
    return load_profile({"id": id, "model": "offline/demo", **values}, "test")


def files(folder: Path, **agents: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in agents.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


async def test_files_are_applied_and_known_after_a_refresh(store, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("queue: {queue_mode: steer}")
    configuration = Configuration(store)
    agents = files(tmp_path / "agents", shop="{id: shop, model: offline/demo}")
    await configuration.apply_files(settings, agents)
    await configuration.refresh()

    assert configuration.settings().queue.queue_mode == "steer"
    agent = configuration.agents.current("shop")
    assert agent is not None
    assert configuration.limits(agent).queue_mode == "steer"


async def test_what_an_operator_changed_stays_until_the_file_changes(store, tmp_path):
    configuration = Configuration(store)
    agents = files(tmp_path / "agents", shop="{id: shop, model: offline/demo, instructions: of the file}")
    await configuration.apply_files(None, agents)
    await configuration.apply_profiles([an_agent(instructions="of the operator")], from_file=False)
    await configuration.apply_files(None, agents)
    await configuration.refresh()
    assert configuration.agents.current("shop").profile.instructions == "of the operator"

    files(agents, shop="{id: shop, model: offline/demo, instructions: of the new file}")
    await configuration.apply_files(None, agents)
    await configuration.refresh()
    assert configuration.agents.current("shop").profile.instructions == "of the new file"


async def test_a_faulty_file_applies_nothing_of_itself(store, tmp_path):
    configuration = Configuration(store)
    agents = files(tmp_path / "agents", good="{id: good, model: offline/demo}", bad="{id: bad, modell: x}")
    with pytest.raises(InvalidConfiguration):
        await configuration.apply_files(None, agents)
    await configuration.refresh()
    assert configuration.agents.current("good") is None


async def test_limits_follow_the_settings(store):
    configuration = Configuration(store)
    await configuration.apply_profiles([an_agent()], from_file=False)
    await configuration.refresh()
    agent = configuration.agents.current("shop")
    assert configuration.limits(agent).mailbox_max == 50

    settings = load_settings({"queue": {"mailbox_max": 7}}, "test")
    await store.apply_settings(settings.revision(), settings.document(), "operator")
    await configuration.refresh()
    assert configuration.limits(agent).mailbox_max == 7


async def test_a_revision_is_found_after_it_has_been_replaced(store):
    configuration = Configuration(store)
    await configuration.apply_profiles([an_agent(instructions="old")], from_file=False)
    await configuration.refresh()
    old = configuration.agents.current("shop")
    await configuration.apply_profiles([an_agent(instructions="new")], from_file=False)

    elsewhere = Configuration(store)
    await elsewhere.refresh()
    assert elsewhere.agents.current("shop").profile.instructions == "new"
    assert (await elsewhere.agents.frozen(old.revision)).profile.instructions == "old"
    assert await elsewhere.agents.frozen("no such revision") is None


async def test_a_profile_that_another_version_wrote_concerns_nobody_else(store):
    configuration = Configuration(store)
    await configuration.apply_profiles([an_agent("good")], from_file=False)
    await store.apply_profile("bad", "r-bad", {"id": "bad", "model": "offline/demo", "from_the_future": 1}, "operator")
    with capture_logs() as log:
        await configuration.refresh()
        await configuration.refresh()

    assert configuration.agents.current("good") is not None
    assert configuration.agents.current("bad") is None
    assert [entry["agent"] for entry in log] == ["bad"]


async def test_settings_that_another_version_wrote_leave_what_was_in_force(store):
    settings = load_settings({"queue": {"mailbox_max": 7}}, "test")
    await store.apply_settings(settings.revision(), settings.document(), "operator")
    configuration = Configuration(store)
    await configuration.refresh()
    await store.apply_settings("r-bad", {"from_the_future": 1}, "operator")
    with capture_logs() as log:
        await configuration.refresh()
        await configuration.refresh()

    assert configuration.settings().queue.mailbox_max == 7
    assert len(log) == 1
    with pytest.raises(InvalidConfiguration):
        await Configuration(store).refresh()


def test_a_file_is_named_by_what_is_in_it():
    assert file_source("abc") == "file:abc"


# --- settings that a process objects to


def against_steering(settings):
    return [("queue.queue_mode", "we do not steer here")] if settings.queue.queue_mode == "steer" else []


async def put_in_force(store, **settings):
    loaded = load_settings(settings, "test")
    await store.apply_settings(loaded.revision(), loaded.document(), "operator")


async def test_a_file_that_is_objected_to_is_refused_by_its_name_and_not_applied(store, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("queue: {queue_mode: steer}")
    with pytest.raises(InvalidConfiguration, match="we do not steer here") as refused:
        await Configuration(store, against_steering).apply_files(file, None)
    assert refused.value.where == str(file)
    assert await store.current_settings() is None


async def test_settings_in_force_that_are_objected_to_keep_a_process_from_starting(store):
    await put_in_force(store, queue={"queue_mode": "steer"})
    with pytest.raises(InvalidConfiguration, match="we do not steer here"):
        await Configuration(store, against_steering).refresh()


@pytest.mark.parametrize("before", [{}, {"queue": {"queue_mode": "collect"}}])
async def test_a_running_process_keeps_what_it_has_and_says_so_once(store, before):
    configuration = Configuration(store, against_steering)
    if before:
        await put_in_force(store, **before)
    await configuration.refresh()
    had = configuration.settings()
    await put_in_force(store, queue={"queue_mode": "steer"})
    with capture_logs() as logs:
        await configuration.refresh()
        await configuration.refresh()
    assert configuration.settings() is had
    assert [(log["log_level"], log["event"]) for log in logs] == [("error", "settings not taken, the old ones hold")]
    assert "queue.queue_mode: we do not steer here" in logs[0]["reason"]
    await put_in_force(store, queue={"queue_mode": "interrupt"})
    await configuration.refresh()
    assert configuration.settings().queue.queue_mode == "interrupt"
