"""What is said of the environment, of settings, agents and channels, and of the work that waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from actors.doctor import alerts, channels, configuration, variables, work
from actors.doctor.finding import Finding, Level
from actors.environment import Environment
from actors.parts import Parts
from actors.samples.demo_agent import demo_profile, offline_models
from actors.samples.demo_tools import demo_tools
from insika.agents.profile import load_profile
from insika.errors import InvalidConfiguration
from insika.settings import Settings, load_settings
from insika.storage.inspection import Contents, DeliveryFacts, SessionFacts
from insika.storage.rows import Revision
from insika.tools.egress import EgressGuard
from insika.tools.registry import ToolRegistry

AT = datetime(2030, 1, 1, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PARTS = Parts(offline_models(), ToolRegistry(demo_tools()))
IDLE = SessionFacts(0, 0, 0, 0.0, 0, 0, 0)
NOTHING_DUE = DeliveryFacts(0, 0, 0.0, 0, 0, 0)
PUBLIC = EgressGuard()


def wrong(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(finding.level.value, finding.what) for finding in findings if finding.level is not Level.OK]


def environment(**values: Any) -> Environment:
    return Environment.model_validate(values)


CLUSTER = {
    "database_url": "postgresql://insika:hidden@db/insika",
    "amqp_url": "amqp://insika:hidden@rabbit/",
    "redis_url": "redis://:hidden@redis/0",
    "tools": "shop_tools",
}


def test_an_environment_for_one_process_says_what_does_not_apply() -> None:
    (finding,) = variables.judged(environment(), [])
    assert finding.level is Level.OK
    assert "do not apply" in finding.what


def test_an_environment_for_a_cluster_is_complete() -> None:
    assert wrong(variables.judged(environment(**CLUSTER), [])) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"database_url": "sqlite:///insika.db"}, "SQLite"),
        ({"redis_url": None}, "INSIKA_REDIS_URL is not set"),
        ({"tools": ""}, "INSIKA_TOOLS is not set"),
        ({"amqp_url": None}, "INSIKA_AMQP_URL is not set"),
        ({"lease_s": 2}, "INSIKA_LEASE_S is 2"),
    ],
)
def test_what_a_cluster_lacks_is_a_warning(changes: dict[str, Any], says: str) -> None:
    findings = list(variables.judged(environment(**{**CLUSTER, **changes}), []))
    ((level, what),) = wrong(findings)
    assert (level, says in what) == ("warn", True)
    assert not any("hidden" in f"{finding.what} {finding.do}" for finding in findings)


def test_a_variable_that_nobody_reads_is_a_warning_and_one_that_is_wrong_a_fault() -> None:
    told = wrong(variables.judged(environment(**CLUSTER), [("INSIKA_REDIS", "is not a variable that Insika reads")]))
    assert told == [("warn", "INSIKA_REDIS is not a variable that Insika reads.")]
    error = InvalidConfiguration("the environment", [("INSIKA_SLOTS", "must be at least 1"), ("INSIKA_LEASE_S", "no.")])
    assert wrong(variables.unreadable(error)) == [
        ("fail", "INSIKA_SLOTS must be at least 1."),
        ("fail", "INSIKA_LEASE_S no."),
    ]


def revision(name: str, data: dict[str, Any]) -> Revision:
    return Revision(f"revision-of-{name}", name, data, "operator", AT)


def test_settings_that_cannot_be_read_are_told_without_their_secrets() -> None:
    assert configuration.read_settings(None) == Settings()
    good = configuration.read_settings(revision("", {"queue": {"mailbox_max": 3}}))
    assert isinstance(good, Settings)
    channel = {"id": "web", "url": "https://shop.example/?token=hidden", "secret": "whsec_hidden"}
    bad = configuration.read_settings(revision("", {"channels": [channel], "nothing": 1}))
    assert isinstance(bad, Finding)
    assert bad.level is Level.FAIL
    assert "channels.0.secret" in bad.what
    assert "nothing" in bad.what
    assert "hidden" not in bad.what + bad.do


def test_a_profile_that_cannot_be_read_is_told_and_the_rest_are_read() -> None:
    sample = Revision(demo_profile().revision(), "demo", demo_profile().document(), "file:x", AT)
    rows = [revision("good", {"id": "good", "model": "offline/demo"}), revision("bad", {"id": "bad"}), sample]
    profiles, findings = configuration.read_profiles(rows)
    assert [profile.id for profile in profiles] == ["good"]
    ((level, what),) = wrong(findings)
    assert (level, what.startswith("Agent bad cannot be read"), "model" in what) == ("fail", True, True)


def profile(**data: Any) -> Any:
    return load_profile({"id": "shop", "model": "offline/demo", **data}, "test")


@pytest.mark.parametrize(
    ("data", "level", "says"),
    [
        ({"model": "offline/other"}, "fail", "no script 'other'"),
        ({"model": "vendor/large"}, "fail", "no provider 'vendor'"),
        ({"tools_allow": ["order_lookup", "order_look"]}, "warn", "tools_allow.1: no tool is called 'order_look' here"),
        ({"tools_deny": ["refunds"]}, "warn", "did you mean refund?"),
        (
            {"guardrails": {"remove": ["en.threat", "en.thread", "iban"]}},
            "warn",
            "guardrails.remove.1: there is no pattern or kind 'en.thread'; did you mean en.threat?",
        ),
        ({"policies": ["hours"]}, "warn", "policies.0: no policy is called 'hours' here"),
        (
            {"routes": {"a": {"description": "x", "delegate": "help"}, "default": "a"}},
            "warn",
            "routes.a.delegate: there is no agent 'help' here",
        ),
        ({"routes": {"a": "x", "default": "a", "model": "offline/none"}}, "warn", "routes.model: there is no script"),
        ({"reliability": {"fallback": ["nowhere/x"]}}, "warn", "reliability.fallback.0: there is no provider"),
        ({"guardrails": {"moderator": "nowhere/x"}}, "warn", "guardrails.moderator: there is no provider"),
        ({"approvals_required": ["refund", "refnd"]}, "warn", "approvals_required.1: no tool is called 'refnd' here"),
    ],
)
def test_what_an_agent_names_and_is_not_here_is_told(data: dict[str, Any], level: str, says: str) -> None:
    ((told, what),) = wrong(configuration.judged([profile(**data)], PARTS))
    assert (told, says in what) == (level, True), what


def test_agents_that_have_all_they_name_are_well() -> None:
    assert wrong(configuration.judged([profile(tools_allow=["order_lookup"])], PARTS)) == []
    assert list(configuration.judged([profile(model="vendor/large")], None)) == []  # nobody could say
    assert [level for level, _ in wrong(configuration.judged([], PARTS))] == ["warn"]


def channel(**values: Any) -> Any:
    given = {"id": "web", "url": "https://shop.example/hook", "secret": SECRET, **values}
    return load_settings({"channels": [given]}, "test").channels[0]


def of_channel(resolved: dict[str, Any], guard: EgressGuard = PUBLIC, **values: Any) -> list[tuple[str, str]]:
    return wrong(channels.judged([channel(**values)], guard, resolved))


def test_a_channel_at_a_public_address_is_well() -> None:
    assert of_channel({"shop.example": ["93.184.216.34"]}) == []
    assert channels.hosts([channel(), channel(url="http://other.example/")], PUBLIC) == {"shop.example"}


@pytest.mark.parametrize(
    ("resolved", "values", "level", "says"),
    [
        ({}, {"url": "http://shop.example/hook"}, "fail", "INSIKA_EGRESS_ALLOW_HTTP"),
        ({}, {"url": "https://10.0.0.1/hook"}, "fail", "private address 10.0.0.1"),
        ({"shop.example": ["93.184.216.34", "10.0.0.1"]}, {}, "fail", "private address 10.0.0.1"),
        ({"shop.example": ["169.254.169.254"]}, {}, "fail", "never reached"),
        ({"shop.example": "Name or service not known"}, {}, "warn", "Name or service not known"),
        ({}, {}, "warn", "was not looked up"),
    ],
)
def test_a_channel_that_cannot_be_reached_is_told(
    resolved: dict[str, Any], values: dict[str, Any], level: str, says: str
) -> None:
    ((told, what),) = of_channel(resolved, **values)
    assert (told, says in what) == (level, True), what


def test_what_stands_in_a_channel_s_url_behind_the_question_mark_is_not_shown() -> None:
    url = "https://shop.example/hook?token=hidden"
    for resolved in ({"shop.example": ["93.184.216.34"]}, {"shop.example": ["10.0.0.1"]}, {}):
        (finding,) = channels.judged([channel(url=url)], PUBLIC, resolved)
        assert "hidden" not in finding.what + finding.do


def test_a_secret_that_cannot_sign_is_told() -> None:
    """One that was stored by a version that took it."""
    unsigned = channel().model_copy(update={"secret": ()})
    ((level, what),) = wrong(channels.judged([unsigned], PUBLIC, {"shop.example": ["93.184.216.34"]}))
    assert (level, what.startswith("Channel web cannot sign")) == ("fail", True)


def test_no_channels_is_a_warning() -> None:
    assert [level for level, _ in wrong(channels.judged([], PUBLIC, {}))] == ["warn"]


def of_alerts(webhook: str, resolved: dict[str, Any], *, signed: bool = True) -> list[tuple[str, str]]:
    return wrong(alerts.judged([profile(alerts={"webhook": webhook})], PUBLIC, resolved, signed=signed))


def test_alerts_to_a_public_address_are_well_and_whoever_wants_none_is_not_asked_for_a_secret() -> None:
    assert of_alerts("https://ops.example/in", {"ops.example": ["93.184.216.34"]}) == []
    assert list(alerts.judged([profile(), profile(alerts={"webhook": None})], PUBLIC, {}, signed=False)) == []
    assert alerts.hosts([profile(), profile(alerts={"webhook": "https://ops.example/in"})], PUBLIC) == {"ops.example"}


@pytest.mark.parametrize(
    ("webhook", "resolved", "level", "says"),
    [
        ("http://ops.example/in", {}, "fail", "may not be sent"),
        ("https://10.0.0.1/in", {}, "fail", "private address 10.0.0.1"),
        ("https://ops.example/in", {"ops.example": ["10.0.0.1"]}, "fail", "private address 10.0.0.1"),
        ("https://ops.example/in", {"ops.example": "Name or service not known"}, "warn", "Name or service not known"),
    ],
)
def test_alerts_that_cannot_be_sent_are_told(webhook: str, resolved: dict[str, Any], level: str, says: str) -> None:
    ((told, what),) = of_alerts(webhook, resolved)
    assert (told, says in what) == (level, True), what


def test_alerts_without_a_secret_to_sign_them_fail() -> None:
    ((level, what),) = of_alerts("https://ops.example/in?key=hidden", {"ops.example": ["93.184.216.34"]}, signed=False)
    assert (level, "INSIKA_WEBHOOK_SECRET is not set" in what, "shop" in what) == ("fail", True, True)
    assert "hidden" not in what


@pytest.mark.parametrize(
    ("of_agent", "of_platform", "level"),
    [({}, {}, "warn"), ({"chat_rate_limit": 5}, {}, "ok"), ({}, {"chat_rate_limit": 5}, "ok"),
     ({"chat_rate_limit": 0}, {"chat_rate_limit": 5}, "warn"), ({"agent_token_ceiling": 5}, {}, "warn")],
)  # fmt: skip
def test_a_public_channel_without_an_agent_that_may_use_it_is_told(
    of_agent: dict[str, Any], of_platform: dict[str, Any], level: str
) -> None:
    open_ = {"id": "web", "url": "https://shop.example/hook", "secret": SECRET, "public": True}
    settings = load_settings({"channels": [open_], "edge": of_platform}, "test")
    (finding,) = configuration.public([profile(limits=of_agent)], settings)
    assert (finding.level.value, "web" in finding.what) == (level, True)
    assert list(configuration.public([profile()], load_settings({"channels": [{**open_, "public": False}]}, "x"))) == []


def of_work(
    sessions: SessionFacts | None = IDLE, deliveries: DeliveryFacts | None = NOTHING_DUE, rejected: int = 0
) -> Any:
    return wrong(work.judged(Contents(None, (), sessions, deliveries, rejected)))


def test_work_that_goes_on_is_well() -> None:
    assert of_work() == []
    assert of_work(replace(IDLE, owned=200, waiting=50), replace(NOTHING_DUE, pending=7)) == []


@pytest.mark.parametrize(
    ("sessions", "deliveries", "rejected", "level", "says"),
    [
        ({"expired": 2}, {}, 0, "fail", "nobody has taken over: 2"),
        ({"overdue": 3, "overdue_s": 400.0}, {}, 0, "fail", "nobody's: 3; the first waits since 7 minutes"),
        ({"suspects": 1}, {}, 0, "warn", "next death: 1"),
        ({"held": 1}, {}, 0, "warn", "an operator holds: 1"),
        ({}, {"overdue": 4, "overdue_s": 90.0}, 0, "warn", "not sent: 4, the first since 90 s"),
        ({}, {"abandoned": 1}, 0, "fail", "nobody has settled: 1"),
        ({}, {"uncertain": 1}, 0, "warn", "may or may not have arrived: 1"),
        ({}, {"failed": 1}, 0, "warn", "failed for good: 1"),
        ({}, {}, 5, "warn", "not handed in again: 5"),
    ],
)
def test_work_that_does_not_go_on_is_told(
    sessions: dict[str, Any], deliveries: dict[str, Any], rejected: int, level: str, says: str
) -> None:
    ((told, what),) = of_work(replace(IDLE, **sessions), replace(NOTHING_DUE, **deliveries), rejected)
    assert (told, says in what) == (level, True), what


def test_what_could_not_be_counted_is_told() -> None:
    assert [level for level, _ in of_work(None, None)] == ["warn", "warn"]
