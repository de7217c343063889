"""Orders over HTTP."""

from fastapi import APIRouter

from app.orders.models import NewOrder, Order
from app.orders.service import OrderService


def order_routes(service: OrderService) -> APIRouter:
    """The routes of this feature."""
    router = APIRouter(prefix="/orders")

    @router.post("", status_code=201)
    async def place(new: NewOrder) -> Order:
        return service.place(new)

    @router.get("")
    async def list_all() -> list[Order]:
        return service.all()

    @router.get("/{order_id}")
    async def get(order_id: str) -> Order:
        return service.get(order_id)

    return router
