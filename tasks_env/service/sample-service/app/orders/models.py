"""What is sent and answered about orders."""

from decimal import Decimal

from app.api.schema import ApiModel


class NewOrder(ApiModel):
    """An order to be placed."""

    order_id: str
    customer_id: str
    amount: Decimal


class Order(ApiModel):
    """An order of ours."""

    order_id: str
    customer_id: str
    amount: Decimal
