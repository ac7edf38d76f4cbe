from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.race_world import Race
from tests.store_world import World


@pytest.fixture
async def race(postgres_world: World, migrated_postgres_url: str) -> AsyncIterator[Race]:
    ready = Race(migrated_postgres_url, postgres_world)
    yield ready
    await ready.close()
