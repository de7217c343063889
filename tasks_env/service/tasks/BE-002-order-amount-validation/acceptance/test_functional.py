"""BE-002: an amount of 0 or less is refused, any other order is accepted as before.

`client` speaks to the service over HTTP; `draw` is this evaluation's generator of random values.
"""

from decimal import Decimal

import pytest

REFUSED = {
    "zero": 0,
    "zero-with-decimals": 0.0,
    "minus-zero": -0.0,
    "minus-one-cent": -0.01,
    "minus-one": -1,
    "minus-a-fraction": -0.5,
    "minus-hundreds": -250.75,
    "minus-billions": -9_876_543_210,
    "minus-huge": -1e18,
    "minus-tiny": -1e-9,
}
ACCEPTED = {
    "one-cent": 0.01,
    "a-tenth": 0.1,
    "a-half": 0.5,
    "one": 1,
    "with-cents": 19.99,
    "thousands": 123_456,
    "billions": 9_876_543_210,
}


@pytest.fixture
def customer_id(client, draw):
    """A customer of this test's own."""
    customer_id = f"customer-{draw.randrange(10**12)}"
    assert client.post("/customers", json={"customerId": customer_id, "name": "Somebody"}).status_code == 201
    return customer_id


@pytest.fixture
def order_id(draw):
    return f"order-{draw.randrange(10**12)}"


def drawn_magnitude(draw):
    return round(10 ** draw.uniform(-1.9, 9), 2)


def placed(client, order_id, customer_id, amount):
    return client.post("/orders", json={"orderId": order_id, "customerId": customer_id, "amount": amount})


def succeeds(client, order_id, customer_id, amount):
    answer = placed(client, order_id, customer_id, amount)
    assert answer.status_code == 201
    body = answer.json()
    assert (body["orderId"], body["customerId"]) == (order_id, customer_id)
    assert Decimal(str(body["amount"])) == Decimal(str(amount))
    assert client.get(f"/orders/{order_id}").json() == body
    assert body in client.get("/orders").json()


@pytest.mark.parametrize("amount", REFUSED.values(), ids=REFUSED)
def test_zero_or_less_is_answered_400(client, customer_id, order_id, amount):
    assert placed(client, order_id, customer_id, amount).status_code == 400


@pytest.mark.parametrize("number", range(1, 6))
def test_a_drawn_negative_is_answered_400(client, customer_id, order_id, draw, number):
    assert placed(client, order_id, customer_id, -drawn_magnitude(draw)).status_code == 400


@pytest.mark.parametrize("amount", [0, -7.5], ids=["zero", "negative"])
def test_a_refused_order_is_not_kept(client, customer_id, order_id, amount):
    placed(client, order_id, customer_id, amount)
    assert client.get(f"/orders/{order_id}").status_code == 404
    assert [order for order in client.get("/orders").json() if order["orderId"] == order_id] == []


def test_the_id_of_a_refused_order_is_still_free(client, customer_id, order_id, draw):
    placed(client, order_id, customer_id, -drawn_magnitude(draw))
    succeeds(client, order_id, customer_id, 25)  # not drawn: which criterion fails must not hang on it


@pytest.mark.parametrize("amount", ACCEPTED.values(), ids=ACCEPTED)
def test_a_positive_amount_succeeds(client, customer_id, order_id, amount):
    succeeds(client, order_id, customer_id, amount)


@pytest.mark.parametrize("number", range(1, 6))
def test_a_drawn_amount_succeeds(client, customer_id, order_id, draw, number):
    succeeds(client, order_id, customer_id, drawn_magnitude(draw))


def test_several_orders_of_one_customer_succeed(client, customer_id, draw):
    for _ in range(3):
        succeeds(client, f"order-{draw.randrange(10**12)}", customer_id, drawn_magnitude(draw))
