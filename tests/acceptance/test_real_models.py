"""Agents on hosted models, through real processes and real HTTP: the vendors are fakes, everything else is the real
thing. What the sample agent's script says is said by the vendors here, so that both roads must lead to one answer."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import SIGTERM, Folder, Result, folder, wait_for
from tests.vendor_processes import VendorProcess, vendor_process
from tests.vendors.troubles import Refuses

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
URLS = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
SAMPLE = {"anthropic": "anthropic/claude-sonnet-5-5", "openai": "openai/gpt-4o-mini"}
NO_MODEL = "offline/demo is a scripted stand-in, not a language model."
ANSWER = "Order 1234 (Field Notes) is on its way."


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Folder]:
    with folder(tmp_path) as made:
        yield made


@pytest.fixture(params=["anthropic", "openai"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def let_in(shop: Folder, kind: str, vendor: VendorProcess, key: str | None = None) -> None:
    shop.environment.update({KEYS[kind]: vendor.key if key is None else key, URLS[kind]: vendor.base_url})


def no_key_shows(done: Result, vendor: VendorProcess) -> None:
    assert vendor.key not in done.out + done.err


def nothing_was_refused(vendor: VendorProcess) -> list[dict[str, Any]]:
    asked = vendor.requests()
    assert [(each["status"], each["rules"]) for each in asked] == [(200, [])] * len(asked)
    return asked


def test_with_a_key_a_fresh_folder_holds_a_conversation(shop: Folder, kind: str) -> None:
    with vendor_process(kind) as vendor:
        let_in(shop, kind, vendor)
        done = shop.insika("dev", input="where is order 1234?\nwhat are you?\n")
        assert (done.code, done.err) == (0, "")
        assert f"Insika: agent demo on {SAMPLE[kind]}, insika.db" in done.out
        assert f"{KEYS[kind]} is set, so a hosted model answers" in done.out
        assert NO_MODEL not in done.out
        assert done.out.index("· order_lookup") < done.out.index(f"demo: {ANSWER}") < done.out.index("demo: Hello!")
        no_key_shows(done, vendor)
        first, _, third = nothing_was_refused(vendor)
        assert {each["body"]["model"] for each in (first, third)} == {SAMPLE[kind].partition("/")[2]}
        assert ANSWER in str(third["body"]["messages"]), "the conversation goes along"
    (turn, _) = shop.must("sessions", "show", "dev", "--json").json["turns"]
    calls = shop.must("turns", "show", turn["turn_id"], "--json").json["model_calls"]
    assert [call["model"] for call in calls] == [SAMPLE[kind]] * 2


def test_without_a_key_it_says_so_and_offers_the_offline_model(shop: Folder) -> None:
    done = shop.insika("dev", input="where is order 1234?\n")
    assert done.code == 0
    assert done.out.splitlines()[:3] == [
        "Insika: agent demo on offline/demo, insika.db",
        NO_MODEL,
        "To talk with a real model, see to one of these and start again: ANTHROPIC_API_KEY is not set; "
        "OPENAI_API_KEY is not set.",
    ]
    assert f"demo: {ANSWER}" in done.out


def test_the_sample_agent_follows_the_keys_and_what_is_asked_for(shop: Folder) -> None:
    with vendor_process("openai") as vendor:
        let_in(shop, "openai", vendor)
        assert "on openai/gpt-4o-mini" in shop.insika("dev", input="hello\n").out
        script = shop.insika("dev", "--model", "offline/demo", input="where is order 1234?\n")
        assert "Insika: agent demo on offline/demo" in script.out
        assert NO_MODEL in script.out
        asked = len(vendor.requests())
        other = shop.insika("dev", "--model", "openai/gpt-4.1", input="where is order 1234?\n")
        assert other.code == 0
        assert vendor.requests()[asked]["body"]["model"] == "gpt-4.1"
        nothing_was_refused(vendor)
    shop.environment.clear()
    again = shop.insika("dev", input="where is order 1234?\n")
    assert "Insika: agent demo on offline/demo" in again.out
    assert again.code == 0
    assert [row["source"] for row in shop.must("agents", "list", "--json").json] == ["built in"]


def test_a_model_that_cannot_be_asked_for_is_told_before_anything_is_said(shop: Folder) -> None:
    missing = shop.insika("dev", "--model", "anthropic/claude-sonnet-5-5", input="hello\n")
    assert missing.code == 1
    assert "ANTHROPIC_API_KEY is not set; mend that and start again. `insika dev --model offline/demo`" in missing.err
    unknown = shop.insika("dev", "--model", "nowhere/x", input="hello\n")
    assert (unknown.code, "there is no provider 'nowhere' here; there are: offline, anthropic" in unknown.err) == (
        2,
        True,
    )
    shop.must("agents", "apply", str(shop.write("shop.yaml", "id: shop\nmodel: offline/demo\n")))
    own = shop.insika("dev", "--agent", "shop", "--model", "offline/demo", input="hello\n")
    assert (own.code, "shop speaks with offline/demo, as its profile says" in own.err) == (2, True)


def test_a_key_that_the_vendor_refuses_fails_the_turn_in_words(shop: Folder, kind: str) -> None:
    with vendor_process(kind) as vendor:
        let_in(shop, kind, vendor, key="sk-wr0ng")
        done = shop.insika("dev", input="hello\n")
    assert done.code == 1
    assert "The turn failed. provider_fatal: " in done.out
    assert "`insika sessions retry dev` runs it once more." in done.out
    assert "Traceback" not in done.out + done.err
    assert "sk-wr0ng" not in done.out + done.err


def test_a_vendor_that_is_busy_or_away_fails_the_turn_and_not_the_chat(shop: Folder, kind: str) -> None:
    with vendor_process(kind) as vendor:
        let_in(shop, kind, vendor)
        vendor.make(Refuses(529))
        done = shop.insika("dev", input="hello\nwhere is order 1234?\n")
        assert done.code == 1
        assert re.search(
            r"\[a request to \S+ failed \(HTTP 529\)\]\n.*The turn failed. provider_unavailable: ", done.out
        )
        assert f"demo: {ANSWER}" in done.out
    away = shop.insika("dev", input="hello\n")
    assert "The turn failed. provider_unavailable: " in away.out
    assert "Traceback" not in away.out + away.err


AGENT = "id: shop\nmodel: {model}\nparams: {{thinking: low}}\n"
THINKS = {"anthropic": "anthropic/claude-sonnet-4-5", "openai": "gateway/large"}
GATEWAY = (
    "providers: [{{name: gateway, kind: openai, base_url: '{url}', key_variable: GATEWAY_KEY, dialect: {dialect}}}]\n"
)


def speaks(shop: Folder, kind: str, vendor: VendorProcess) -> None:
    """An agent of one's own that thinks, applied by files."""
    (shop.path / "agents").mkdir()
    shop.write("agents/shop.yaml", AGENT.format(model=THINKS[kind]))
    shop.environment["INSIKA_AGENTS_DIR"] = "agents"
    if kind == "anthropic":
        let_in(shop, kind, vendor)
        return
    shop.write("settings.yaml", GATEWAY.format(url=vendor.base_url, dialect="deepseek"))
    shop.environment.update(INSIKA_SETTINGS="settings.yaml", GATEWAY_KEY=vendor.key)


def test_what_a_model_thinks_is_shown_in_its_place(shop: Folder, kind: str) -> None:
    dialect = ("--dialect", "deepseek") if kind == "openai" else ()
    with vendor_process(kind, "tests.vendor_scripts:THINKING", *dialect) as vendor:
        speaks(shop, kind, vendor)
        done = shop.insika("dev", input="my order?\n")
        assert (done.code, done.err) == (0, "")
        nothing_was_refused(vendor)
    shown = [line for line in done.out.splitlines() if line.startswith(("  ", "shop:"))]
    assert shown == [
        "  ~ They want an order.",
        "  ~ I look it up.",
        "  Let me look.",
        "  · order_lookup",
        "  ~ It is there.",
        "shop: It left.",
    ]


def test_what_a_request_had_thought_before_it_broke_is_void(shop: Folder, kind: str) -> None:
    dialect = ("--dialect", "deepseek") if kind == "openai" else ()
    with vendor_process(kind, "tests.vendor_scripts:BREAKING", *dialect) as vendor:
        speaks(shop, kind, vendor)
        done = shop.insika("dev", input="break\nhello\n")
    assert done.code == 1
    void = r"  ~ A plan\.\n\[a request to \S+ failed.*; what stands above with ~ was part of it, and is void\]\n"
    assert re.search(void + r"(.*\n)?The turn failed\. provider_unavailable: ", done.out), done.out
    assert "Never whole" not in done.out
    assert "shop: Hello there." in done.out


@pytest.mark.parametrize(
    ("dialect", "setting"),
    [("deepseek", "deepseek"), ("openrouter", "openrouter"), ("vllm", "compatible"), ("ollama", "compatible")],
)
def test_a_provider_of_the_settings_speaks_its_dialect(shop: Folder, dialect: str, setting: str) -> None:
    with vendor_process("openai", "insika.providers.demo_script:demo_script", "--dialect", dialect) as vendor:
        shop.write("settings.yaml", GATEWAY.format(url=vendor.base_url, dialect=setting))
        shop.write("shop.yaml", "id: shop\nmodel: gateway/some/model\n")
        shop.environment.update(INSIKA_SETTINGS="settings.yaml", GATEWAY_KEY=vendor.key)
        shop.must("migrate")
        assert shop.must("agents", "validate", "shop.yaml").err == ""
        shop.must("agents", "apply", "shop.yaml")
        done = shop.insika("dev", input="where is order 1234?\n")
        assert (done.code, f"shop: {ANSWER}" in done.out) == (0, True), done
        asked = nothing_was_refused(vendor)
        assert {each["body"]["model"] for each in asked} == {"some/model"}


def test_a_provider_that_is_applied_while_a_process_runs_is_used_by_the_next_turn(shop: Folder) -> None:
    with vendor_process("openai", "insika.providers.demo_script:demo_script", "--dialect", "ollama") as vendor:
        worker = shop.start("dev", stdin=subprocess.DEVNULL)
        worker.until("Working on insika.db")
        local = f"providers: [{{name: local, kind: openai, base_url: '{vendor.base_url}'}}]\n"
        shop.must("settings", "apply", str(shop.write("settings.yaml", local)))
        shop.must("agents", "apply", str(shop.write("shop.yaml", "id: shop\nmodel: local/llama3.2\n")))
        sent = shop.must("send", "--session", "ana", "--agent", "shop", "where is order 1234?", "--json").json
        wait_for(lambda: state(shop, sent["turn_id"]) == "completed", lambda: worker.printed)
        assert worker.signal(SIGTERM) == 0
        nothing_was_refused(vendor)
    last = shop.must("sessions", "show", "ana", "--json").json["messages"][-1]
    assert last["content"] == ANSWER


def test_an_agent_of_one_s_own_without_its_key_is_told_of_at_the_start_and_by_the_doctor(shop: Folder) -> None:
    shop.must("migrate")
    profile = shop.write("shop.yaml", "id: shop\nmodel: anthropic/claude-sonnet-4-5\n")
    warned = shop.must("agents", "apply", str(profile))
    assert (
        "warning: model: provider anthropic cannot be asked from this process: ANTHROPIC_API_KEY is not set"
        in warned.err
    )
    done = shop.insika("dev", input="hello\n")
    assert done.code == 1
    assert "shop cannot answer yet: provider anthropic cannot be asked from this process: ANTHROPIC_API_KEY" in done.out
    failed = "The turn failed. provider_fatal: agent 'shop' cannot be run here on anthropic/claude-sonnet-4-5: "
    assert f"{failed}provider anthropic cannot be asked from this process: ANTHROPIC_API_KEY is not set." in done.out
    assert "profile names what is not here" in done.err
    findings = shop.insika("doctor", "--json").json["findings"]
    (about,) = [finding for finding in findings if finding["about"] == "models"]
    assert about["level"] == "fail"
    assert (
        about["what"]
        == "Provider anthropic, wanted by agent shop, cannot be asked from here: ANTHROPIC_API_KEY is not set."
    )
    shop.environment.update(ANTHROPIC_API_KEY="sk-ant-x", ANTHROPIC_BASE_URL="http://127.0.0.1:1")
    findings = shop.insika("doctor", "--json").json["findings"]
    assert [finding["level"] for finding in findings if finding["about"] == "models"] == ["ok"]


def state(shop: Folder, turn_id: str) -> str:
    return str(shop.must("turns", "show", turn_id, "--json").json["state"])
