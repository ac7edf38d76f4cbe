"""Agents, settings and channels by the command line: checked, applied once, shown without their secrets."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from actors.samples.demo_agent import demo_profile

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SHOP = "id: shop\nmodel: offline/demo\ninstructions: |\n  Be kind.\n  Be brief.\n"
SETTINGS = f"""
queue: {{queue_mode: steer}}
channels:
- {{id: web, url: "https://shop.example/hook?token=hush", secret: [{SECRET}, {SECRET}], max_attempts: 5}}
"""


@pytest.fixture
def shop(migrated: Any) -> Any:
    migrated.write("shop.yaml", SHOP)
    migrated.write("settings.yaml", SETTINGS)
    return migrated


def test_applying_an_agent_again_changes_nothing(shop: Any) -> None:
    (first,) = shop.json("agents", "apply", "shop.yaml")
    (second,) = shop.json("agents", "apply", "shop.yaml")
    assert (first["id"], first["changed"], second["changed"]) == ("shop", True, False)
    assert first["revision"] == second["revision"]
    assert shop.run("agents", "apply", "shop.yaml").output.startswith("unchanged  shop, revision ")


def test_what_says_the_same_in_other_words_is_no_other_agent(shop: Any) -> None:
    (first,) = shop.json("agents", "apply", "shop.yaml")
    shop.write("shop.yaml", 'model: offline/demo\n# said anew\nid: shop\ninstructions: "Be kind.\\nBe brief.\\n"\n')
    (second,) = shop.json("agents", "apply", "shop.yaml")
    assert (second["changed"], second["revision"]) == (False, first["revision"])
    shop.write("shop.yaml", SHOP + "tools_deny: [refund]\n")
    assert shop.json("agents", "apply", "shop.yaml")[0]["changed"]
    shop.write("shop.yaml", SHOP)
    (back,) = shop.json("agents", "apply", "shop.yaml")
    assert (back["changed"], back["revision"]) == (True, first["revision"])


def test_the_schema_for_editors_is_the_one_that_is_shipped(command_line: Any) -> None:
    printed = command_line.run("agents", "schema").output
    assert printed == (files("insika.agents") / "profile.schema.json").read_text()


def test_agents_are_listed_by_name_and_shown_as_they_were_written(shop: Any) -> None:
    shop.write("a.yaml", "id: a\nmodel: offline/demo\n")
    shop.run("agents", "apply", "shop.yaml", "a.yaml")
    listed = shop.json("agents", "list")
    assert [(row["id"], row["model"], row["source"]) for row in listed] == [
        ("a", "offline/demo", "operator"),
        ("shop", "offline/demo", "operator"),
    ]
    shown = shop.json("agents", "show", "shop")
    assert shown["profile"] == {"id": "shop", "model": "offline/demo", "instructions": "Be kind.\nBe brief.\n"}
    assert shown["revision"] == listed[1]["revision"]
    assert "instructions: |\n  Be kind.\n  Be brief.\n" in shop.run("agents", "show", "shop").output


def test_the_sample_agent_is_built_in(shop: Any) -> None:
    sample = demo_profile()
    shop.seed(lambda world: world.store.apply_profile("demo", sample.revision(), sample.document(), "file:x"))
    assert [row["source"] for row in shop.json("agents", "list")] == ["built in"]
    assert shop.run("agents", "list").output.rstrip().endswith("built in")


def test_an_agent_that_is_not_there_is_an_error(shop: Any) -> None:
    missing = shop.run("agents", "show", "nobody")
    assert (missing.exit_code, "there is no agent 'nobody'" in missing.stderr) == (1, True)


def test_every_mistake_of_every_file_is_named_by_its_path(shop: Any) -> None:
    shop.write("bad.yaml", "id: '!'\nlimits: {tool_timeout: no, max_tool_call: 3}\n")
    checked = shop.json("agents", "validate", "shop.yaml", "bad.yaml", "missing.yaml", code=1)
    assert [(one["file"], one["valid"], one["id"]) for one in checked] == [
        ("shop.yaml", True, "shop"),
        ("bad.yaml", False, None),
        ("missing.yaml", False, None),
    ]
    assert {problem["path"] for problem in checked[1]["problems"]} == {
        "id",
        "model",
        "limits.tool_timeout",
        "limits.max_tool_call",
    }
    told = shop.run("agents", "validate", "shop.yaml", "bad.yaml", "missing.yaml")
    assert told.exit_code == 1
    assert told.stdout == "shop.yaml: valid, agent shop\n"
    assert "bad.yaml: not valid\n  id: " in told.stderr
    assert "missing.yaml: not valid\n  (top level): cannot be read: " in told.stderr


def test_two_files_for_one_agent_are_a_mistake(shop: Any) -> None:
    shop.write("again.yaml", SHOP)
    told = shop.run("agents", "validate", "shop.yaml", "again.yaml")
    assert (told.exit_code, told.stderr) == (1, "again.yaml: not valid\n  id: is the id of shop.yaml already\n")
    assert shop.run("agents", "apply", "shop.yaml", "again.yaml").exit_code == 1
    assert shop.json("agents", "list") == []


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("nowhere/large", "there is no provider 'nowhere' here; there are: offline, anthropic, openai"),
        ("offline/none", "there is no script 'none'; there are: demo"),
    ],
)
def test_a_model_that_cannot_run_here_is_a_mistake(shop: Any, model: str, why: str) -> None:
    shop.write("shop.yaml", f"id: shop\nmodel: {model}\n")
    for command in ("validate", "apply"):
        (checked,) = shop.json("agents", command, "shop.yaml", code=1)
        assert checked["problems"] == [{"path": "model", "message": why}]
        told = shop.run("agents", command, "shop.yaml")
        assert (told.exit_code, f"shop.yaml: not valid\n  model: {why}\n" in told.stderr) == (1, True)
    assert shop.json("agents", "list") == []


def test_tools_that_are_not_here_are_warned_of(shop: Any) -> None:
    shop.write("shop.yaml", SHOP + "tools_allow: [refund, x]\ntools_allow_groups: [order]\ntools_deny: [refnd]\n")
    expected = {
        "tools_allow.1": "no tool is called 'x' here",
        "tools_allow_groups.0": "no tool is in a group called 'order' here; did you mean orders?",
        "tools_deny.0": "no tool is called 'refnd' here; did you mean refund?",
    }
    for command in ("validate", "apply"):
        (checked,) = shop.json("agents", command, "shop.yaml")
        assert {warning["path"]: warning["message"] for warning in checked["warnings"]} == expected
        told = shop.run("agents", command, "shop.yaml")
        assert told.exit_code == 0
        for path, why in expected.items():
            assert f"  warning: {path}: {why}\n" in told.stderr


def test_agents_that_are_not_there_to_be_handed_a_turn_are_warned_of(shop: Any) -> None:
    routes = "routes:\n  a: {description: x, delegate: hel}\n  b: {description: y, delegate: shop}\n  default: a\n"
    shop.write("shop.yaml", SHOP + routes)
    shop.write("help.yaml", SHOP.replace("id: shop", "id: help"))

    def warned(*files: str) -> list[str]:
        checked = shop.json("agents", "validate", "shop.yaml", *files)
        return [f"{warning['path']}: {warning['message']}" for warning in checked[0]["warnings"]]

    missing = "routes.a.delegate: there is no agent 'hel' here, and where there is none, a turn of this route fails"
    itself = "routes.b.delegate: hands the turn to the agent that has it, which only uses up how often it may be"
    assert warned() == [missing, itself]
    assert warned("help.yaml") == [f"{missing}; did you mean help?", itself]
    shop.write("hel.yaml", SHOP.replace("id: shop", "id: hel"))
    assert warned("hel.yaml") == [itself]
    shop.run("agents", "apply", "hel.yaml")
    assert warned() == [itself]


def test_a_classifier_that_is_not_here_is_warned_of(shop: Any) -> None:
    shop.write("shop.yaml", SHOP + "routes: {a: x, default: a, model: nowhere/small}\n")
    (checked,) = shop.json("agents", "validate", "shop.yaml")
    assert [warning["path"] for warning in checked["warnings"]] == ["routes.model"]
    assert "nowhere" in checked["warnings"][0]["message"]


def test_the_tools_that_are_named_are_those_a_profile_is_checked_against(shop: Any, monkeypatch: Any) -> None:
    shop.write(
        "pets.py", "from insika.tools.python_tools import tool\n\n@tool\ndef bark() -> str:\n    return 'woof'\n"
    )
    monkeypatch.setenv("INSIKA_TOOLS", "pets.py")
    shop.write("shop.yaml", SHOP + "tools_allow: [bark, refund]\n")
    (checked,) = shop.json("agents", "validate", "shop.yaml")
    assert [warning["path"] for warning in checked["warnings"]] == ["tools_allow.1"]


def test_checking_and_applying_answer_in_one_shape(shop: Any) -> None:
    keys = ["file", "id", "valid", "changed", "revision", "problems", "warnings"]
    shop.write("bad.yaml", "id: bad\n")
    for group, file in (("agents", "shop.yaml"), ("settings", "settings.yaml")):
        for command in ("validate", "apply"):
            (checked,) = shop.json(group, command, file)
            assert list(checked) == keys
            assert checked["changed"] is (command == "apply")
            (faulty,) = shop.json(group, command, "bad.yaml", code=1)
            assert (list(faulty), faulty["valid"], faulty["changed"], faulty["revision"]) == (keys, False, False, None)


def test_one_faulty_file_keeps_the_others_from_being_applied(shop: Any) -> None:
    shop.write("bad.yaml", "id: bad\n")
    told = shop.run("agents", "apply", "shop.yaml", "bad.yaml")
    assert (told.exit_code, told.stdout) == (1, "")
    assert told.stderr == "bad.yaml: not valid\n  model: is required\nNothing was applied.\n"
    assert shop.json("agents", "list") == []


def test_validating_needs_no_database(command_line: Any) -> None:
    command_line.write("shop.yaml", SHOP)
    assert command_line.run("agents", "validate", "shop.yaml").exit_code == 0
    command_line.write("settings.yaml", SETTINGS)
    assert command_line.run("settings", "validate", "settings.yaml").output == "settings.yaml: valid\n"
    assert not command_line.database.exists()


def test_settings_are_applied_once_and_shown_without_secrets(shop: Any) -> None:
    (first,) = shop.json("settings", "apply", "settings.yaml")
    (second,) = shop.json("settings", "apply", "settings.yaml")
    assert (first["changed"], second["changed"], first["revision"]) == (True, False, second["revision"])
    shown = shop.json("settings", "show")
    assert shown["source"] == "operator"
    assert shown["applied_at"].endswith("Z")
    assert shown["settings"]["queue"]["queue_mode"] == "steer"
    for told in (shop.run("settings", "show").output, str(shown), shop.run("channels", "list", "--json").output):
        assert "web" in told
        assert "MfKQ9r8" not in told
        assert "hush" not in told


def test_settings_that_nobody_applied_are_the_defaults(migrated: Any) -> None:
    shown = migrated.json("settings", "show")
    assert (shown["revision"], shown["source"], shown["applied_at"]) == (None, None, None)
    assert shown["settings"]["queue"]["queue_mode"] == "followup"
    assert migrated.run("settings", "show").output.startswith("# No settings have been applied")


def test_faulty_settings_are_told_by_path_and_not_applied(shop: Any) -> None:
    shop.write("bad.yaml", "queue: {mailbox_max: -1}\nchannel: []\n")
    (checked,) = shop.json("settings", "validate", "bad.yaml", code=1)
    assert [problem["path"] for problem in checked["problems"]] == ["queue.mailbox_max", "channel"]
    applied = shop.run("settings", "apply", "bad.yaml")
    assert applied.exit_code == 1
    assert "  queue.mailbox_max: " in applied.stderr
    assert shop.json("settings", "show")["revision"] is None


def test_channels_are_those_of_the_settings_in_force(shop: Any) -> None:
    assert shop.json("channels", "list") == []
    assert shop.run("channels", "list").output.startswith("No channels.")
    shop.run("settings", "apply", "settings.yaml")
    (channel,) = shop.json("channels", "list")
    assert (channel["id"], channel["url"], channel["max_attempts"]) == ("web", "https://shop.example/hook?***", 5)
    assert channel["secret"] == ["whsec_***", "whsec_***"]
    _, row = shop.run("channels", "list").output.splitlines()
    assert row.split() == ["web", "https://shop.example/hook?***", "at_most_once", "whole", "5", "15", "s", "2"]


# --- HTTP tools


HTTP_TOOLS = """
http_tools:
- name: parcel_status
  description: Where a parcel is.
  parameters: {type: object, properties: {number: {type: string}}, required: [number]}
  request: {url: "https://post.example/parcels/%{arguments.number}?key=hush"}
  secret_headers: {Authorization: "Bearer %{env.POST_TOKEN}"}
"""
OWN_TOOLS = """
from insika.tools import tool


@tool
def parcel_status(number: str) -> str:
    return "on its way"
"""


def test_http_tools_are_shown_with_the_names_of_their_secrets_only(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POST_TOKEN", "t0ken")
    shop.write("http.yaml", HTTP_TOOLS)
    assert shop.json("settings", "apply", "http.yaml")[0]["warnings"] == []
    shown = shop.json("settings", "show")["settings"]["http_tools"]
    assert [tool["secret_headers"] for tool in shown] == [{"Authorization": "Bearer %{env.POST_TOKEN}"}]
    for output in (shop.run("settings", "show").output, str(shown)):
        assert "%{env.POST_TOKEN}" in output
        assert "hush" not in output
        assert "t0ken" not in output


def test_a_secret_that_is_not_set_here_is_warned_of(shop: Any) -> None:
    shop.write("http.yaml", HTTP_TOOLS)
    (checked,) = shop.json("settings", "validate", "http.yaml")
    assert checked["warnings"] == [
        {"path": "http_tools.0.secret_headers", "message": "the environment variable POST_TOKEN is not set here"}
    ]


def test_a_name_that_a_tool_of_the_environment_has_is_refused_by_both_places(
    shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.write("http.yaml", HTTP_TOOLS)
    shop.write("own_tools_of_a_clash.py", OWN_TOOLS)
    monkeypatch.setenv("INSIKA_TOOLS", "own_tools_of_a_clash.py")
    for command in ("validate", "apply"):
        (checked,) = shop.json("settings", command, "http.yaml", code=1)
        ((path, why),) = [(problem["path"], problem["message"]) for problem in checked["problems"]]
        assert path == "http_tools.0.name"
        assert "own_tools_of_a_clash" in why
    assert shop.json("settings", "show")["revision"] is None


def test_each_mistake_of_an_http_tool_is_told_at_its_path(shop: Any) -> None:
    shop.write("http.yaml", HTTP_TOOLS.replace("%{arguments.number}", "%{arguments.numbr}").replace("type: string", ""))
    (checked,) = shop.json("settings", "validate", "http.yaml", code=1)
    assert [problem["path"] for problem in checked["problems"]] == ["http_tools.0.request.url"]


def test_an_agent_may_name_the_http_tools_of_the_settings_in_force(shop: Any) -> None:
    shop.write("named.yaml", "id: named\nmodel: offline/demo\ntools_allow: [parcel_status, parcel]\n")
    shop.write("http.yaml", HTTP_TOOLS)

    def warned() -> list[str]:
        (checked,) = shop.json("agents", "validate", "named.yaml")
        return [warning["path"] for warning in checked["warnings"]]

    assert warned() == ["tools_allow.0", "tools_allow.1"]
    shop.run("settings", "apply", "http.yaml")
    assert warned() == ["tools_allow.1"]
