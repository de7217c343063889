"""The application: features and shared error handling put together."""

from fastapi import FastAPI

from app.api.errors import install_error_handler
from app.customers.routes import customer_routes
from app.customers.service import CustomerService
from app.orders.routes import order_routes
from app.orders.service import OrderService


def create_app() -> FastAPI:
    """A service of its own, without any data."""
    customers = CustomerService()
    orders = OrderService(customers)
    application = FastAPI(title="sample-service")
    install_error_handler(application)
    application.include_router(customer_routes(customers))
    application.include_router(order_routes(orders))
    return application


app = create_app()
