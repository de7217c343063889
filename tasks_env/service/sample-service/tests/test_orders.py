"""Orders. Every test has ids of its own, so that all of them can share one service."""

from decimal import Decimal

import pytest


@pytest.fixture
def customer_id(client, request) -> str:
    """A customer of this test's own."""
    customer_id = f"customer-of-{request.node.name}"
    client.post("/customers", json={"customerId": customer_id, "name": "Alan Turing"})
    return customer_id


def test_a_placed_order_is_answered(client, customer_id) -> None:
    answer = client.post("/orders", json={"orderId": "o-1", "customerId": customer_id, "amount": 19.99})
    assert answer.status_code == 201
    body = answer.json()
    assert (body["orderId"], body["customerId"]) == ("o-1", customer_id)
    assert Decimal(body["amount"]) == Decimal("19.99")


def test_a_placed_order_can_be_read(client, customer_id) -> None:
    client.post("/orders", json={"orderId": "o-2", "customerId": customer_id, "amount": 250})
    answer = client.get("/orders/o-2")
    assert answer.status_code == 200
    assert Decimal(answer.json()["amount"]) == 250


def test_orders_are_listed(client, customer_id) -> None:
    for order_id in ("o-3", "o-4"):
        client.post("/orders", json={"orderId": order_id, "customerId": customer_id, "amount": 5})
    listed = [order["orderId"] for order in client.get("/orders").json()]
    assert [order_id for order_id in listed if order_id in ("o-3", "o-4")] == ["o-3", "o-4"]


def test_an_unknown_order_is_404_in_the_envelope(client) -> None:
    answer = client.get("/orders/o-none")
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["code"] == "ORDER_NOT_FOUND"
    assert "o-none" in error["message"]
    assert error["fields"] == []


def test_an_order_of_an_unknown_customer_is_404_in_the_envelope(client) -> None:
    answer = client.post("/orders", json={"orderId": "o-5", "customerId": "nobody", "amount": 5})
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["code"] == "CUSTOMER_NOT_FOUND"
    assert error["fields"] == []


def test_a_taken_order_id_is_409_in_the_envelope(client, customer_id) -> None:
    client.post("/orders", json={"orderId": "o-6", "customerId": customer_id, "amount": 5})
    answer = client.post("/orders", json={"orderId": "o-6", "customerId": customer_id, "amount": 7})
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["code"] == "ORDER_EXISTS"
    assert error["fields"] == ["orderId"]
    assert Decimal(client.get("/orders/o-6").json()["amount"]) == 5
