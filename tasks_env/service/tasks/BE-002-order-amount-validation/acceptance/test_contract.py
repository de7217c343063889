"""BE-002: the answer to an amount of 0 or less has the shape that every other error of the API has.

Only the shape: which code, which words and which fields are the submission's to choose.
"""

import pytest

AMOUNTS = {"zero": 0, "minus-one": -1, "minus-one-cent": -0.01}


@pytest.fixture
def customer_id(client, draw):
    customer_id = f"customer-{draw.randrange(10**12)}"
    assert client.post("/customers", json={"customerId": customer_id, "name": "Somebody"}).status_code == 201
    return customer_id


def has_the_envelope(answer):
    assert answer.headers["content-type"].split(";")[0] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) == {"code", "message", "fields"}
    assert isinstance(error["code"], str)
    assert error["code"].strip()
    assert isinstance(error["message"], str)
    assert error["message"].strip()
    assert isinstance(error["fields"], list)
    assert all(isinstance(field, str) for field in error["fields"])


@pytest.mark.parametrize("amount", AMOUNTS.values(), ids=AMOUNTS)
def test_the_answer_is_in_the_envelope(client, customer_id, draw, amount):
    order = {"orderId": f"order-{draw.randrange(10**12)}", "customerId": customer_id, "amount": amount}
    has_the_envelope(client.post("/orders", json=order))


@pytest.mark.parametrize("number", range(1, 4))
def test_the_answer_to_a_drawn_amount_is_in_the_envelope(client, customer_id, draw, number):
    amount = -round(10 ** draw.uniform(-1.9, 9), 2)
    order = {"orderId": f"order-{draw.randrange(10**12)}", "customerId": customer_id, "amount": amount}
    has_the_envelope(client.post("/orders", json=order))


def test_other_errors_are_still_in_the_envelope(client, draw):
    answer = client.get(f"/orders/order-{draw.randrange(10**12)}")
    assert answer.status_code == 404
    has_the_envelope(answer)
