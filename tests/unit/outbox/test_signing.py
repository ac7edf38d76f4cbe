from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from outbox.signing import BadSignature, UnusableSecret, body_of, signature_headers, verify
from tests.outbox_doubles import OTHER_SECRET, SECRET


def signed(*secrets, at=None, body=b'{"a":1}', delivery_id="d1"):
    return signature_headers(secrets, delivery_id=delivery_id, at=at or datetime.now(UTC), body=body)


def test_the_library_of_a_receiver_accepts_what_we_sign():
    assert Webhook(SECRET).verify(b'{"a":1}', signed(SECRET)) == {"a": 1}


def test_a_known_vector_of_the_standard():
    headers = signature_headers(
        [SECRET],
        delivery_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        at=datetime.fromtimestamp(1614265330, UTC),
        body=b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_while_secrets_rotate_either_of_them_verifies():
    headers = signed(OTHER_SECRET, SECRET)
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (SECRET, OTHER_SECRET):
        verify([secret], headers, b'{"a":1}')


def test_a_receiver_may_know_several_secrets():
    verify([OTHER_SECRET, SECRET], signed(SECRET), b'{"a":1}')


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "d2"},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": "v1"},
        {"webhook-signature": "v1,a,b"},
        {"webhook-signature": "v1,not base64"},
        {"webhook-signature": "v2,g0hM9SsE"},
        {"webhook-signature": ""},
        {"webhook-timestamp": "yesterday"},
        {"webhook-timestamp": "1"},
        {"webhook-timestamp": "inf"},
    ],
)
def test_a_request_that_was_touched_is_refused(change):
    with pytest.raises(BadSignature):
        verify([SECRET], {**signed(SECRET), **change}, b'{"a":1}')


def test_another_body_or_secret_is_refused():
    with pytest.raises(BadSignature):
        verify([SECRET], signed(SECRET), b'{"a":2}')
    with pytest.raises(BadSignature):
        verify([SECRET], signed(SECRET), b"\xff\xfe")
    with pytest.raises(BadSignature):
        verify([OTHER_SECRET], signed(SECRET), b'{"a":1}')
    with pytest.raises(BadSignature):
        verify([], signed(SECRET), b'{"a":1}')


@pytest.mark.parametrize("minutes", [-6, 6])
def test_a_timestamp_more_than_five_minutes_off_is_refused(minutes):
    at = datetime.now(UTC) + timedelta(minutes=minutes)
    with pytest.raises(BadSignature):
        verify([SECRET], signed(SECRET, at=at), b'{"a":1}')


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_a", "whsec_&&&&§"])
def test_a_secret_that_cannot_sign_is_named_as_such(secret):
    with pytest.raises(UnusableSecret) as caught:
        signed(secret)
    assert caught.value.field == "secret"
    assert secret not in caught.value.message or not secret or secret == "whsec_"


def test_no_secret_is_not_an_unsigned_request():
    with pytest.raises(UnusableSecret):
        signed()


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=())),
        st.text(st.characters(exclude_categories=())) | st.integers() | st.booleans() | st.none(),
    )
)
def test_the_body_is_the_same_bytes_whatever_the_order_of_keys_and_reads_back(payload):
    body = body_of(payload)
    backwards = dict(reversed(list(payload.items())))
    assert body == body_of(backwards) == body_of(json.loads(json.dumps(payload)))
    assert json.loads(body.decode("utf-8")) == payload
    headers = signed(SECRET, body=body)
    verify([SECRET], headers, body)


def test_half_of_an_emoji_and_nul_travel_as_escapes():
    assert body_of({"content": "\ud83d|\0|😀|ä"}) == '{"content":"\\ud83d|\\u0000|😀|ä"}'.encode()
