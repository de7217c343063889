"""The worlds that tables come from: invented, realistic columns. Data, and the classes that hold it.

Category values are single lower-case words, so that sorting by character code is alphabetical and comparing
is free of case. Every theme has, among its own fields, at least two categories, two numbers that are never
empty and a formula over its own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tasks_env.families.tabular.spec import Operator

FieldKind = Literal["id", "category", "number", "date", "remark"]


@dataclass(frozen=True, slots=True)
class Field:
    """A column that can be drawn.

    Numbers are drawn from `low`, `low + step`, … up to `high`, in units of the last decimal. An id is
    `prefix` and three digits. Dates lie in one year.
    """

    name: str
    kind: FieldKind
    values: tuple[str, ...] = ()
    prefix: str = ""
    low: int = 0
    high: int = 0
    step: int = 1
    decimals: int = 0
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """A table whose rows the main table refers to by `key`."""

    name: str
    key: Field
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """A column that can be derived; every operand is never empty, every divisor positive."""

    column: str
    left: str
    operator: Operator
    right: str
    decimals: int


@dataclass(frozen=True, slots=True)
class Theme:
    """A main table with two tables that it refers to."""

    table: str
    key: Field
    fields: tuple[Field, ...]
    lookups: tuple[Lookup, Lookup]
    formulas: tuple[Formula, ...]


def _id(name: str, prefix: str) -> Field:
    return Field(name, "id", prefix=prefix)


def _category(name: str, values: str) -> Field:
    return Field(name, "category", values=tuple(values.split()))


def _number(name: str, low: int, high: int, step: int = 1, decimals: int = 0, optional: bool = False) -> Field:
    return Field(name, "number", low=low, high=high, step=step, decimals=decimals, optional=optional)


def _date(name: str) -> Field:
    return Field(name, "date")


_COUNTRIES = "austria brazil canada denmark egypt finland greece hungary"
_REGIONS = "north south east west central coastal highland island"

THEMES: tuple[Theme, ...] = (
    Theme(
        table="orders",
        key=_id("order_id", "ORD-"),
        fields=(
            _date("ordered_on"),
            _category("channel", "web phone store partner kiosk app fax catalog"),
            _category("region", _REGIONS),
            _category("payment", "card cash invoice voucher transfer wallet cheque credit"),
            _number("quantity", 1, 20),
            _number("unit_price", 250, 8000, 25, 2),
            _number("shipping", 300, 2400, 50, 2),
            _number("discount", 50, 900, 50, 2, optional=True),
            _number("rating", 1, 5, optional=True),
        ),
        lookups=(
            Lookup(
                "customers",
                _id("customer_id", "C-"),
                (
                    _category("segment", "retail wholesale public school medical hotel farming media"),
                    _category("country", _COUNTRIES),
                    _number("credit_limit", 500, 9000, 250),
                ),
            ),
            Lookup(
                "products",
                _id("product_id", "P-"),
                (
                    _category("product_type", "chair desk lamp shelf carpet mirror cabinet stool"),
                    _category("supplier", "alder birch cedar dogwood elm fir ginkgo hazel"),
                    _number("unit_cost", 150, 5000, 25, 2),
                ),
            ),
        ),
        formulas=(
            Formula("line_total", "quantity", "times", "unit_price", 2),
            Formula("unit_price_with_shipping", "unit_price", "plus", "shipping", 2),
            Formula("shipping_per_unit", "shipping", "divided_by", "quantity", 2),
            Formula("unit_margin", "unit_price", "minus", "unit_cost", 2),
        ),
    ),
    Theme(
        table="shifts",
        key=_id("shift_id", "SH-"),
        fields=(
            _date("worked_on"),
            _category("role", "cook waiter cashier cleaner driver guard porter manager"),
            _category("period", "morning noon evening night weekend holiday split early"),
            _category("contract", "permanent temporary student seasonal agency trainee freelance parttime"),
            _number("hours", 20, 120, 5, 1),
            _number("hourly_wage", 1200, 3200, 50, 2),
            _number("break_minutes", 10, 60, 5),
            _number("tips", 100, 6000, 50, 2, optional=True),
            _number("score", 1, 10, optional=True),
        ),
        lookups=(
            Lookup(
                "employees",
                _id("employee_id", "E-"),
                (
                    _category("team", "amber bronze cobalt denim emerald fuchsia garnet hazel"),
                    _category("home_town", "ashford burley colne dover epsom frome goole hythe"),
                    _number("years_employed", 0, 25),
                ),
            ),
            Lookup(
                "sites",
                _id("site_id", "S-"),
                (
                    _category("site_type", "airport bistro canteen diner hotel kiosk museum stadium"),
                    _category("district", "harbor market castle garden river station temple valley"),
                    _number("seats", 20, 300, 10),
                ),
            ),
        ),
        formulas=(
            Formula("pay", "hours", "times", "hourly_wage", 2),
            Formula("breaks_per_hour", "break_minutes", "divided_by", "hours", 1),
            Formula("wage_per_seat", "hourly_wage", "divided_by", "seats", 3),
        ),
    ),
    Theme(
        table="readings",
        key=_id("reading_id", "R-"),
        fields=(
            _date("taken_on"),
            _category("shift", "dawn morning noon afternoon dusk evening midnight night"),
            _category("quality", "good fair poor raw checked flagged manual estimated"),
            _category("weather", "clear cloudy rain snow fog wind storm hail"),
            _number("temperature", -150, 380, 5, 1),
            _number("inside_temperature", 120, 280, 5, 1),
            _number("samples", 2, 30),
            _number("energy", 200, 9000, 50, 1),
            _number("humidity", 15, 98, optional=True),
            _number("pressure", 9600, 10400, 10, 1, optional=True),
        ),
        lookups=(
            Lookup(
                "sensors",
                _id("sensor_id", "SN-"),
                (
                    _category("maker", "acme borealis corvus delta ember flux gamma helix"),
                    _category("mount", "wall roof mast floor ceiling pipe buoy window"),
                    _number("battery_percent", 5, 100, 5),
                ),
            ),
            Lookup(
                "stations",
                _id("station_id", "ST-"),
                (
                    _category("terrain", "forest desert meadow marsh summit shore glacier urban"),
                    _category("zone", _REGIONS),
                    _number("altitude", 5, 2400, 5),
                ),
            ),
        ),
        formulas=(
            Formula("temperature_gap", "inside_temperature", "minus", "temperature", 1),
            Formula("energy_per_sample", "energy", "divided_by", "samples", 2),
            Formula("energy_per_altitude", "energy", "divided_by", "altitude", 3),
        ),
    ),
    Theme(
        table="loans",
        key=_id("loan_id", "L-"),
        fields=(
            _date("borrowed_on"),
            _category("desk", "main annex garden tower cellar foyer gallery mobile"),
            _category("state", "returned overdue open renewed lost reserved damaged waived"),
            _category("purpose", "study leisure research teaching exhibit family travel club"),
            _number("days", 1, 42),
            _number("renewals", 0, 6),
            _number("daily_fee", 10, 150, 5, 2),
            _number("deposit", 500, 6000, 100, 2),
            _number("fine", 25, 1500, 25, 2, optional=True),
        ),
        lookups=(
            Lookup(
                "members",
                _id("member_id", "M-"),
                (
                    _category("membership", "adult child student senior family guest staff corporate"),
                    _category("borough", "ashton brixley carlow denby eltham farley gorton hexham"),
                    _number("age", 8, 90),
                ),
            ),
            Lookup(
                "books",
                _id("book_id", "B-"),
                (
                    _category("genre", "biography comedy drama essay fantasy history poetry thriller"),
                    _category("language", "arabic bengali czech danish english french german hindi"),
                    _number("pages", 80, 900, 10),
                ),
            ),
        ),
        formulas=(
            Formula("loan_fee", "days", "times", "daily_fee", 2),
            Formula("deposit_per_day", "deposit", "divided_by", "days", 2),
            Formula("pages_per_day", "pages", "divided_by", "days", 1),
        ),
    ),
    Theme(
        table="deliveries",
        key=_id("delivery_id", "D-"),
        fields=(
            _date("delivered_on"),
            _category("service", "express standard economy overnight sameday freight pickup locker"),
            _category("vehicle", "van bike truck car scooter drone tram boat"),
            _category("outcome", "handed neighbor returned refused damaged postponed redirected missed"),
            _number("distance_km", 10, 900, 5, 1),
            _number("minutes", 8, 180, 4),
            _number("parcels", 1, 15),
            _number("fee", 300, 4500, 50, 2),
            _number("tip", 50, 800, 50, 2, optional=True),
            _number("stars", 1, 5, optional=True),
        ),
        lookups=(
            Lookup(
                "couriers",
                _id("courier_id", "CR-"),
                (
                    _category("company", "arrow bolt comet dart eagle falcon gull heron"),
                    _category("rank", "novice junior regular senior expert chief veteran reserve"),
                    _number("bonus", 100, 2500, 50, 2),
                ),
            ),
            Lookup(
                "depots",
                _id("depot_id", "DP-"),
                (
                    _category("city", "bergen dublin geneva lisbon malmo naples porto turin"),
                    _category("depot_type", "hub branch outlet terminal dock yard hall silo"),
                    _number("bays", 2, 40, 2),
                ),
            ),
        ),
        formulas=(
            Formula("fee_per_km", "fee", "divided_by", "distance_km", 2),
            Formula("fee_per_parcel", "fee", "divided_by", "parcels", 2),
            Formula("parcel_minutes", "minutes", "times", "parcels", 0),
            Formula("fee_plus_bonus", "fee", "plus", "bonus", 2),
        ),
    ),
    Theme(
        table="tickets",
        key=_id("ticket_id", "T-"),
        fields=(
            _date("opened_on"),
            _category("topic", "billing login shipping refund outage upgrade privacy feedback"),
            _category("priority", "low normal high urgent critical trivial minor major"),
            _category("source", "email chat phone forum letter portal social walkin"),
            _number("replies", 1, 18),
            _number("handling_minutes", 5, 240, 5),
            _number("reopened", 0, 4),
            _number("cost", 150, 9000, 50, 2),
            _number("refund_amount", 200, 7500, 100, 2, optional=True),
            _number("satisfaction", 1, 10, optional=True),
        ),
        lookups=(
            Lookup(
                "agents",
                _id("agent_id", "A-"),
                (
                    _category("squad", "anchor beacon compass drift echo fathom gale harbor"),
                    _category("office", "cairo delhi lima osaka paris quito seoul tunis"),
                    _number("seniority", 1, 20),
                ),
            ),
            Lookup(
                "accounts",
                _id("account_id", "AC-"),
                (
                    _category("plan", "basic plus premium team business nonprofit trial legacy"),
                    _category("market", _COUNTRIES),
                    _number("licenses", 1, 80),
                ),
            ),
        ),
        formulas=(
            Formula("minutes_per_reply", "handling_minutes", "divided_by", "replies", 1),
            Formula("cost_per_reply", "cost", "divided_by", "replies", 2),
            Formula("touches", "replies", "plus", "reopened", 0),
            Formula("cost_per_license", "cost", "divided_by", "licenses", 2),
        ),
    ),
)

EXTRA_FIELDS: tuple[Field, ...] = (
    _number("batch", 1, 9),
    _date("updated_on"),
    _category("checked_by", "ada bo cy dee eli fay gus hal"),
    Field(
        "remark",
        "remark",
        values=("ok", "see file", "late, but fine", 'marked "urgent"', "call back", "moved; paid", "none"),
    ),
    _number("revision", 0, 12),
    _category("system", "alpha beta gamma delta epsilon zeta eta theta"),
)
"""Columns that fit any theme, for distraction when a theme's own are used up."""
