"""What is sent and answered about customers."""

from app.api.schema import ApiModel


class NewCustomer(ApiModel):
    """A customer to be created."""

    customer_id: str
    name: str


class Customer(ApiModel):
    """A customer of ours."""

    customer_id: str
    name: str
