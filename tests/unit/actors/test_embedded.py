"""What a whole process says when it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from actors.embedded import Embedded, Parts
from actors.environment import read_environment
from actors.samples.demo_agent import demo_profile, offline_models


async def opened(path: Path) -> list[tuple[str, str, str]]:
    """The agent, path and level of what was warned of."""
    (path / "agents").mkdir(exist_ok=True)
    with capture_logs() as logs:
        embedded = await Embedded.open(read_environment(), Parts(offline_models()))
        await embedded.configuration.apply_profiles([demo_profile()], from_file=True)
        await embedded.store.close()
    return [
        (log["agent"], log["field"], log["log_level"])
        for log in logs
        if log["event"] == "profile names what is not here"
    ]


async def test_an_agent_that_names_what_is_not_here_is_warned_of_and_the_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert await opened(tmp_path) == []
    assert await opened(tmp_path) == [], "the sample agent, whose tools are not here, was warned of"
    monkeypatch.setenv("INSIKA_AGENTS_DIR", "agents")
    (tmp_path / "agents" / "shop.yaml").write_text("id: shop\nmodel: openai/gpt-5\ntools_deny: [refnd]\n")
    assert await opened(tmp_path) == [("shop", "model", "warning"), ("shop", "tools_deny.0", "warning")]
