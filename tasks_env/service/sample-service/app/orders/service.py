"""The orders, and the rules about them."""

from app.api.errors import ConflictError, NotFoundError
from app.customers.service import CustomerService
from app.orders.models import NewOrder, Order


class OrderService:
    """Holds all orders."""

    def __init__(self, customers: CustomerService) -> None:
        self._customers = customers
        self._orders: dict[str, Order] = {}

    def place(self, new: NewOrder) -> Order:
        """Add an order.

        Raises:
            NotFoundError: there is no such customer.
            ConflictError: there is an order with this id.
        """
        self._customers.get(new.customer_id)
        if new.order_id in self._orders:
            raise ConflictError("ORDER_EXISTS", f"there is an order {new.order_id} already", fields=("orderId",))
        order = Order(order_id=new.order_id, customer_id=new.customer_id, amount=new.amount)
        self._orders[order.order_id] = order
        return order

    def get(self, order_id: str) -> Order:
        """One order. Raises `NotFoundError`."""
        if order_id not in self._orders:
            raise NotFoundError("ORDER_NOT_FOUND", f"there is no order {order_id}")
        return self._orders[order_id]

    def all(self) -> list[Order]:
        """Every order, oldest first."""
        return list(self._orders.values())
