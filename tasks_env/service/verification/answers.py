"""Good answers, and answers that are wrong by little: mutants of the known-good submission, task by task."""

from __future__ import annotations

from collections.abc import Callable

from tasks_env.service.verification.case import Case, baseline, good
from tasks_env.service.verification.submission import Submission

CUSTOMERS, ORDERS = "app/customers/service.py", "app/orders/service.py"
BLANK_TEST = "if not new.customer_id.strip():"
AMOUNT_TEST = "if new.amount <= 0:"
RAISE_BLANK = 'raise ApiError(400, "CUSTOMER_ID_BLANK", "a customer id must not be blank", fields=("customerId",))'
RAISE_AMOUNT = 'raise ApiError(400, "AMOUNT_NOT_POSITIVE", "an order\'s amount must be above 0", fields=("amount",))'


def _mutant(name: str, path: str, old: str, new: str) -> Case:
    return Case(name, lambda benchmark: good(benchmark).edited(path, old, new))


def _unvalidated(name: str, change: Callable[[Submission], Submission]) -> Case:
    """A case made from the untouched service, by another design than the known-good one's."""
    return Case(name, lambda benchmark: change(baseline(benchmark)))


# --- BE-001 -------------------------------------------------------------------------------------------------------


def _customers_by_route(tree: Submission) -> Submission:
    """The rule as a dependency of the route, with the shared error."""
    routes = "app/customers/routes.py"
    return (
        tree.edited(
            routes,
            "from fastapi import APIRouter",
            "from typing import Annotated\n\nfrom fastapi import APIRouter, Depends",
        )
        .edited(
            routes,
            "from app.customers.models import Customer, NewCustomer",
            "from app.api.errors import ApiError\nfrom app.customers.models import Customer, NewCustomer",
        )
        .edited(
            routes,
            "def customer_routes(",
            "def with_an_id(new: NewCustomer) -> NewCustomer:\n"
            "    if new.customer_id == '' or new.customer_id.isspace():\n"
            "        raise ApiError(400, 'VALIDATION_FAILED', 'customerId is blank', ('customerId',))\n"
            "    return new\n\n\n"
            "def customer_routes(",
        )
        .edited(
            routes,
            "async def create(new: NewCustomer)",
            "async def create(new: Annotated[NewCustomer, Depends(with_an_id)])",
        )
    )


def _customers_by_default_handler(tree: Submission) -> Submission:
    routes = "app/customers/routes.py"
    return tree.edited(routes, "import APIRouter", "import APIRouter, HTTPException").edited(
        routes,
        "        return service.create(new)",
        "        if not new.customer_id.strip():\n"
        "            raise HTTPException(400, 'customerId is blank')\n"
        "        return service.create(new)",
    )


def _customers_by_field(tree: Submission) -> Submission:
    return tree.having(
        {
            "app/customers/models.py": tree.files["app/customers/models.py"]
            .decode()
            .replace("from app.api", "from pydantic import Field\n\nfrom app.api", 1)
            .replace("customer_id: str", 'customer_id: str = Field(min_length=1, pattern=r"\\S")', 1)
        }
    )


CUSTOMER_ANSWERS = (
    Case("alternative_good", lambda benchmark: _customers_by_route(baseline(benchmark))),
    _unvalidated("framework_400", _customers_by_default_handler),
    _unvalidated("framework_validation", _customers_by_field),
    _mutant("only_empty", CUSTOMERS, BLANK_TEST, 'if new.customer_id == "":'),
    _mutant("only_spaces", CUSTOMERS, BLANK_TEST, 'if not new.customer_id.strip(" "):'),
    _mutant("only_not_empty", CUSTOMERS, BLANK_TEST, "if new.customer_id.isspace():"),
    _mutant("only_ascii_space", CUSTOMERS, BLANK_TEST, 'if not new.customer_id.strip(" \\t\\r\\n"):'),
    _mutant("only_one_line", CUSTOMERS, BLANK_TEST, 'if not new.customer_id.replace(" ", "").replace("\\t", ""):'),
    _mutant("rejects_one_letter", CUSTOMERS, BLANK_TEST, "if len(new.customer_id.strip()) < 2:"),
    _mutant("rejects_inner_space", CUSTOMERS, BLANK_TEST, "if len(new.customer_id.split()) != 1:"),
    _mutant(
        "rejects_beyond_ascii",
        CUSTOMERS,
        BLANK_TEST,
        "if not new.customer_id.strip() or not new.customer_id.isascii():",
    ),
    _mutant("rejects_long", CUSTOMERS, BLANK_TEST, "if not 0 < len(new.customer_id.strip()) < 65:"),
    _mutant("rejects_everything", CUSTOMERS, BLANK_TEST, "if True:"),
    _mutant("rejects_empty_name", CUSTOMERS, BLANK_TEST, "if not new.customer_id.strip() or not new.name:"),
    _mutant("answers_404", CUSTOMERS, "ApiError(400,", "ApiError(404,"),
    _mutant(
        "persists_despite_400",
        CUSTOMERS,
        RAISE_BLANK,
        f'self._customers[new.customer_id] = Customer(customer_id=new.customer_id, name="")\n            {RAISE_BLANK}',
    ),
    _mutant(
        "answers_400_later",
        CUSTOMERS,
        BLANK_TEST,
        "self._seen = getattr(self, '_seen', 0) + 1\n        if not new.customer_id.strip() and self._seen > 12:",
    ),
    _mutant(
        "special_cases_the_tests",
        CUSTOMERS,
        BLANK_TEST,
        "if new.customer_id in ('', ' ', '     ', '\\t', '\\n', ' \\t\\r\\n ', '\\u00a0', '\\u2003'):",
    ),
    Case(
        "breaks_customers",
        lambda benchmark: good(benchmark).edited(CUSTOMERS, '"CUSTOMER_NOT_FOUND"', '"NOT_THERE"'),
    ),
    Case(
        "handler_hangs",
        lambda benchmark: (
            good(benchmark)
            .edited(CUSTOMERS, BLANK_TEST, "if not new.customer_id.strip():\n            time.sleep(300)")
            .opening(CUSTOMERS, "import time\n")
        ),
        timed_out=True,
    ),
)

# --- BE-002 -------------------------------------------------------------------------------------------------------


def _orders_by_framework(tree: Submission) -> Submission:
    """The framework's validation, mapped to the envelope by a handler in the shared package."""
    errors = "app/api/errors.py"
    return (
        _orders_by_field(tree)
        .edited(
            errors,
            "from fastapi import FastAPI, Request\n",
            "from fastapi import FastAPI, Request\nfrom fastapi.exceptions import RequestValidationError\n",
        )
        .edited(
            errors,
            "    application.add_exception_handler(ApiError, answer)\n",
            "    application.add_exception_handler(ApiError, answer)\n\n"
            "    async def refuse(request: Request, error: Exception) -> JSONResponse:\n"
            "        assert isinstance(error, RequestValidationError)\n"
            "        fields = tuple(str(each['loc'][-1]) for each in error.errors())\n"
            "        return await answer(request, ApiError(400, 'VALIDATION_FAILED', 'not valid', fields))\n\n"
            "    application.add_exception_handler(RequestValidationError, refuse)\n",
        )
    )


def _orders_by_field(tree: Submission) -> Submission:
    models = "app/orders/models.py"
    changed = tree.files[models].decode().replace("amount: Decimal", "amount: Decimal = Field(gt=0)", 1)
    return tree.having({models: changed.replace("from app.api", "from pydantic import Field\n\nfrom app.api", 1)})


def _orders_by_default_handler(tree: Submission) -> Submission:
    routes = "app/orders/routes.py"
    return tree.edited(routes, "import APIRouter", "import APIRouter, HTTPException").edited(
        routes,
        "        return service.place(new)",
        "        if new.amount <= 0:\n"
        "            raise HTTPException(400, 'the amount must be positive')\n"
        "        return service.place(new)",
    )


def _orders_by_own_answer(body: str) -> Callable[[Submission], Submission]:
    """A 400 that the route writes itself."""

    def change(tree: Submission) -> Submission:
        return (
            tree.edited("app/orders/routes.py", "import APIRouter", "import APIRouter, Response")
            .edited(
                "app/orders/routes.py", "async def place(new: NewOrder) -> Order:", "async def place(new: NewOrder):"
            )
            .edited(
                "app/orders/routes.py",
                '@router.post("", status_code=201)',
                '@router.post("", status_code=201, response_model=None)',
            )
            .edited(
                "app/orders/routes.py",
                "        return service.place(new)",
                "        if new.amount <= 0:\n"
                f"            return Response({body!r}, 400, media_type='application/json')\n"
                "        return service.place(new)",
            )
        )

    return change


ORDER_ANSWERS = (
    Case("alternative_good", lambda benchmark: _orders_by_framework(baseline(benchmark))),
    _unvalidated("framework_400", _orders_by_default_handler),
    _unvalidated("framework_validation", _orders_by_field),
    _unvalidated(
        "envelope_without_fields", _orders_by_own_answer('{"error": {"code": "BAD_AMOUNT", "message": "not positive"}}')
    ),
    _unvalidated(
        "envelope_with_null",
        _orders_by_own_answer('{"error": {"code": "BAD_AMOUNT", "message": "no", "fields": null}}'),
    ),
    _unvalidated("error_as_text", _orders_by_own_answer('{"error": "the amount must be positive"}')),
    _unvalidated(
        "envelope_and_more",
        _orders_by_own_answer('{"status": 400, "error": {"code": "BAD", "message": "no", "fields": []}}'),
    ),
    _mutant("only_negative", ORDERS, AMOUNT_TEST, "if new.amount < 0:"),
    _mutant("only_zero", ORDERS, AMOUNT_TEST, "if new.amount == 0:"),
    _mutant("rejects_a_cent", ORDERS, AMOUNT_TEST, "if new.amount <= 0.01:"),
    _mutant("rejects_fractions", ORDERS, AMOUNT_TEST, "if int(new.amount) <= 0:"),
    _mutant("accepts_tiny_negatives", ORDERS, AMOUNT_TEST, "if round(new.amount, 2) < 0 or new.amount == 0:"),
    _mutant("accepts_huge_negatives", ORDERS, AMOUNT_TEST, "if -(10**12) < new.amount <= 0:"),
    _mutant("rejects_everything", ORDERS, AMOUNT_TEST, "if True:"),
    _mutant("rejects_large", ORDERS, AMOUNT_TEST, "if not 0 < new.amount < 10**9:"),
    _mutant("rounds_what_it_keeps", ORDERS, "amount=new.amount", "amount=round(new.amount)"),
    _mutant("answers_404", ORDERS, "ApiError(400,", "ApiError(404,"),
    _mutant(
        "persists_despite_400",
        ORDERS,
        RAISE_AMOUNT,
        "self._orders[new.order_id] = Order(order_id=new.order_id, customer_id=new.customer_id, amount=new.amount)\n"
        f"            {RAISE_AMOUNT}",
    ),
    _mutant(
        "takes_the_id_despite_400",
        ORDERS,
        RAISE_AMOUNT,
        f"self._taken = {{*getattr(self, '_taken', ()), new.order_id}}\n            {RAISE_AMOUNT}\n"
        "        if new.order_id in getattr(self, '_taken', ()):\n"
        '            raise ConflictError("ORDER_EXISTS", "taken")',
    ),
    _mutant(
        "special_cases_the_tests",
        ORDERS,
        AMOUNT_TEST,
        "if float(new.amount) in (0.0, -0.01, -1.0, -0.5, -250.75, -9876543210.0, -1e18, -1e-9, -7.5):",
    ),
    Case(
        "breaks_customers",
        lambda benchmark: good(benchmark).edited(CUSTOMERS, '"CUSTOMER_NOT_FOUND"', '"NOT_THERE"'),
    ),
    Case(
        "breaks_orders",
        lambda benchmark: good(benchmark).edited(ORDERS, 'fields=("orderId",)', "fields=()"),
    ),
    Case(
        "handler_hangs",
        lambda benchmark: (
            good(benchmark)
            .edited(ORDERS, AMOUNT_TEST, f"{AMOUNT_TEST}\n            time.sleep(300)")
            .opening(ORDERS, "import time\n")
        ),
        timed_out=True,
    ),
)

ANSWERS: dict[str, tuple[Case, ...]] = {"BE-001": CUSTOMER_ANSWERS, "BE-002": ORDER_ANSWERS}
"""Benchmark → its own cases; those of every benchmark are in `cases`."""
