"""The record of what runs is whole, however many servers are started and stopped at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from scripts.private_services import PrivateServices


def test_servers_may_change_at_once(tmp_path):
    services = PrivateServices(tmp_path, ["redis", "postgres"], owner=None)
    with ThreadPoolExecutor(8) as threads:
        for written in [threads.submit(server._changed) for _ in range(100) for server in services.servers]:
            written.result()
    assert PrivateServices.load(tmp_path).servers
    assert [path.name for path in tmp_path.iterdir()] == ["services.json"]
