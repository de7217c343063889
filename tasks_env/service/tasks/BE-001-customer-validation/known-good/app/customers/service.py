"""The customers, and the rules about them."""

from app.api.errors import ApiError, ConflictError, NotFoundError
from app.customers.models import Customer, NewCustomer


class CustomerService:
    """Holds all customers."""

    def __init__(self) -> None:
        self._customers: dict[str, Customer] = {}

    def create(self, new: NewCustomer) -> Customer:
        """Add a customer.

        Raises:
            ApiError: the id is blank.
            ConflictError: there is a customer with this id.
        """
        if not new.customer_id.strip():
            raise ApiError(400, "CUSTOMER_ID_BLANK", "a customer id must not be blank", fields=("customerId",))
        if new.customer_id in self._customers:
            raise ConflictError(
                "CUSTOMER_EXISTS", f"there is a customer {new.customer_id} already", fields=("customerId",)
            )
        customer = Customer(customer_id=new.customer_id, name=new.name)
        self._customers[customer.customer_id] = customer
        return customer

    def get(self, customer_id: str) -> Customer:
        """One customer. Raises `NotFoundError`."""
        if customer_id not in self._customers:
            raise NotFoundError("CUSTOMER_NOT_FOUND", f"there is no customer {customer_id}")
        return self._customers[customer_id]

    def all(self) -> list[Customer]:
        """Every customer, oldest first."""
        return list(self._customers.values())
