"""BE-001: a blank customer id is refused, any other is accepted as before.

`client` speaks to the service over HTTP; `draw` is this evaluation's generator of random values.
"""

import pytest

BLANK = {
    "empty": "",
    "one-space": " ",
    "spaces": "     ",
    "tab": "\t",
    "newline": "\n",
    "mixed": " \t\r\n ",
    "no-break-space": "\u00a0",
    "em-space": "\u2003",
}
NOT_BLANK = {
    "one-letter": "x",
    "zero": "0",
    "word-null": "null",
    "inner-space": "ada lovelace",
    "letters-beyond-ascii": "Søren Ærø",
    "dash": "-",
    "long": "c" * 200,
}


def drawn_blank(draw):
    return "".join(draw.choice(" \t\r\n\u00a0\u2003") for _ in range(draw.randrange(1, 12)))


def drawn_id(draw):
    return "customer-" + "".join(draw.choice("abcdefghijklmnopqrstuvwxyz0123456789_.") for _ in range(12))


def refused(client, customer_id):
    return client.post("/customers", json={"customerId": customer_id, "name": "Nobody"}).status_code == 400


@pytest.mark.parametrize("customer_id", BLANK.values(), ids=BLANK)
def test_a_blank_id_is_answered_400(client, customer_id):
    assert refused(client, customer_id)


@pytest.mark.parametrize("number", range(1, 5))
def test_a_drawn_blank_id_is_answered_400(client, draw, number):
    assert refused(client, drawn_blank(draw))


def test_a_refused_customer_is_not_kept(client, draw):
    for customer_id in ("", " ", "\t", drawn_blank(draw)):
        refused(client, customer_id)
    assert [each for each in client.get("/customers").json() if not each["customerId"].strip()] == []


def created_and_kept(client, customer_id, name):
    answer = client.post("/customers", json={"customerId": customer_id, "name": name})
    assert answer.status_code == 201
    assert answer.json() == {"customerId": customer_id, "name": name}
    assert {"customerId": customer_id, "name": name} in client.get("/customers").json()


@pytest.mark.parametrize("customer_id", NOT_BLANK.values(), ids=NOT_BLANK)
def test_any_other_id_is_created(client, customer_id):
    created_and_kept(client, customer_id, "Somebody")


@pytest.mark.parametrize("number", range(1, 5))
def test_a_drawn_id_is_created(client, draw, number):
    created_and_kept(client, drawn_id(draw), f"Somebody {number}")


def test_a_customer_is_created_after_a_refusal(client, draw):
    refused(client, "")
    created_and_kept(client, drawn_id(draw), "Somebody")


def test_an_empty_name_is_still_accepted(client, draw):
    created_and_kept(client, drawn_id(draw), "")


def test_a_created_customer_is_read_by_its_id(client, draw):
    customer_id = drawn_id(draw)
    created_and_kept(client, customer_id, "Somebody")
    assert client.get(f"/customers/{customer_id}").json() == {"customerId": customer_id, "name": "Somebody"}
