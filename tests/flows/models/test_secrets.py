"""Where a key must not be: error texts, raw bodies, answers, reprs, logs; however the server spells it.

A server may echo the key as it was sent, with JSON's escapes, or as a part of an address, in an error of any status
or in an answer; none of these is kept.
"""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from typing import Any

import pytest

from flows.models.adapter import ModelCallError
from flows.models.keys import ApiKey
from flows.models.reading import Doubled, NotFinite, parse_body
from tests.flows.models.fault_server import FaultServer, Reply
from tests.flows.models.support import ADAPTERS, complete, entry, plain_answer

KEY = 'sk-live/ab+cd="0123456789'
"""With every kind of character that JSON or an address spells in another way."""

SPELLINGS = {
    "as it is": json.dumps(KEY)[1:-1],
    "slash escaped": json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "all escaped": "".join(f"\\u{ord(character):04x}" for character in KEY),
    "all escaped in capitals": "".join(f"\\u{ord(character):04X}" for character in KEY),
    "in an address": "https://example.com/?key=sk-live%2Fab%2Bcd%3D%220123456789",
}
"""How the key may stand within a JSON string."""

TRACES = (KEY, "0123456789")


def clean(*texts: str) -> bool:
    return not any(trace in text for text in texts for trace in TRACES)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("status", [200, 400, 401, 403, 429, 500])
def test_an_echoed_key_is_in_no_error(
    server: FaultServer, adapter: str, status: int, spelling: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = SPELLINGS[spelling]
    body = f'{{"error": {{"message": "bad key {echo}", "code": "{echo}", "{echo}": [{{"deep": "{echo}"}}]}}}}'
    server.script(Reply(status, body, {"x-echo": KEY, "www-authenticate": KEY}))
    with pytest.raises(ModelCallError) as caught:
        complete(entry(adapter, server.url), key=KEY)
    error = caught.value
    assert any(KEY in value for value in server.requests[0].headers.values())
    texts = [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error)), caplog.text]
    assert clean(*texts, json.dumps(error.raw), repr(pickle.dumps((error.args, error.detail, error.raw))))
    assert "[key]" in error.detail


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_echoed_key_is_in_no_answer(server: FaultServer, adapter: str, spelling: str) -> None:
    text = json.dumps(plain_answer(adapter, "MARK")).replace("MARK", f"the key is {SPELLINGS[spelling]}")
    server.script(Reply(200, text))
    completion = complete(entry(adapter, server.url), key=KEY)
    assert clean(completion.message.text, json.dumps(completion.raw))
    assert completion.message.text.startswith("the key is ")


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("body", [f"<h1>{KEY}</h1>", f"no JSON: {KEY}", f'{{"a": "{SPELLINGS["slash escaped"]}'])
@pytest.mark.parametrize("status", [200, 502])
def test_an_echoed_key_is_in_no_raw_page(server: FaultServer, adapter: str, body: str, status: int) -> None:
    plain = KEY.replace('"', "")
    server.script(Reply(status, body.replace(KEY, plain).replace('\\"', "")))
    with pytest.raises(ModelCallError) as caught:
        complete(entry(adapter, server.url), key=plain)
    assert clean(str(caught.value), json.dumps(caught.value.raw))


def test_a_key_is_not_shown_by_what_holds_it() -> None:
    key = ApiKey(KEY)
    assert clean(repr(key), str(key), f"{key}")
    assert not hasattr(key, "__dict__")


def test_scrubbing_keeps_everything_else_as_it_was_read() -> None:
    text = '{"a": [1, NaN, true, null, "x\\ny"], "b": {"c": 1, "c": 2}, "\\u0073ecret": "a \\u0073ecret"}'
    read: Any = parse_body(text, lambda found: found.replace("secret", "[key]"))
    assert read == {"a": [1, "NaN", True, None, "x\ny"], "b": {"c": 2}, "[key]": "a [key]"}
    assert (type(read["a"][1]), type(read["b"])) == (NotFinite, Doubled), "what is unsound stays marked"
