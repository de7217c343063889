"""Customers. Every test has ids of its own, so that all of them can share one service."""


def test_a_created_customer_is_answered(client) -> None:
    answer = client.post("/customers", json={"customerId": "ada", "name": "Ada Lovelace"})
    assert answer.status_code == 201
    assert answer.json() == {"customerId": "ada", "name": "Ada Lovelace"}


def test_a_created_customer_can_be_read(client) -> None:
    client.post("/customers", json={"customerId": "grace", "name": "Grace Hopper"})
    answer = client.get("/customers/grace")
    assert answer.status_code == 200
    assert answer.json() == {"customerId": "grace", "name": "Grace Hopper"}


def test_customers_are_listed(client) -> None:
    for customer_id in ("edsger", "barbara"):
        client.post("/customers", json={"customerId": customer_id, "name": customer_id.title()})
    listed = [customer["customerId"] for customer in client.get("/customers").json()]
    assert [customer_id for customer_id in listed if customer_id in ("edsger", "barbara")] == ["edsger", "barbara"]


def test_an_unknown_customer_is_404_in_the_envelope(client) -> None:
    answer = client.get("/customers/nobody")
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["code"] == "CUSTOMER_NOT_FOUND"
    assert "nobody" in error["message"]
    assert error["fields"] == []


def test_a_taken_customer_id_is_409_in_the_envelope(client) -> None:
    client.post("/customers", json={"customerId": "donald", "name": "Donald Knuth"})
    answer = client.post("/customers", json={"customerId": "donald", "name": "Somebody Else"})
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["code"] == "CUSTOMER_EXISTS"
    assert error["fields"] == ["customerId"]
    assert client.get("/customers/donald").json()["name"] == "Donald Knuth"
