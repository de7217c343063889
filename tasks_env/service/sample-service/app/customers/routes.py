"""Customers over HTTP."""

from fastapi import APIRouter

from app.customers.models import Customer, NewCustomer
from app.customers.service import CustomerService


def customer_routes(service: CustomerService) -> APIRouter:
    """The routes of this feature."""
    router = APIRouter(prefix="/customers")

    @router.post("", status_code=201)
    async def create(new: NewCustomer) -> Customer:
        return service.create(new)

    @router.get("")
    async def list_all() -> list[Customer]:
        return service.all()

    @router.get("/{customer_id}")
    async def get(customer_id: str) -> Customer:
        return service.get(customer_id)

    return router
