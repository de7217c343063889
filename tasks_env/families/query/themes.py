"""The settings that databases are generated in. Words are plain ASCII, without quotes, semicolons or
braces."""

from __future__ import annotations

from tasks_env.errors import UnknownName
from tasks_env.families.query.schema import Column, Table, Theme


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST = _words(
    "Ada Bruno Clara Dario Elena Felix Greta Hugo Ines Jonas Karin Leon Mira Nils Olga Pablo "
    "Rosa Stefan Tilda Viktor Wanda Yara"
)
_LAST = _words(
    "Abbott Becker Conti Dahl Engel Fischer Garcia Hansen Ivanov Jansen Keller Lopez Moreau Novak "
    "Olsen Petit Rossi Schmidt Tanner Vogel Weber Zeller"
)
_TONE = _words(
    "Amber Bright Copper Distant Early Fading Golden Hidden Inner Jade Kind Lonely Marble Narrow "
    "Open Pale Quiet Rapid Silent Tender Upper Velvet Winter Young"
)
_THING = _words(
    "Anchor Bridge Candle Desert Engine Forest Garden Harbour Island Journey Kettle Lantern Mirror "
    "Needle Orchard Pencil Quarry River Shadow Tower Umbrella Valley Window Zephyr"
)
_PLACE = _words(
    "Ash Birch Cedar Dale Elm Fern Glen Heath Iris Juniper Kestrel Linden Maple North Oak Poplar "
    "Quay Rowan Stone Thorn Vine Willow"
)
_SITE = _words(
    "Bank Corner Cross Court End Field Gate Green Hill Lane Market Mill Park Point Quarter Road "
    "Side Square Street View Walk Yard"
)

_PEOPLE = (_FIRST, _LAST)
_TITLES = (_TONE, _THING)
_PLACES = (_PLACE, _SITE)

_KEY = Column("id", "key")
_NAME = Column("name", "name")


def _link(name: str, target: str, nullable: bool = False) -> Column:
    return Column(name, "link", nullable=nullable, target=target)


def _category(name: str, values: str, nullable: bool = False) -> Column:
    return Column(name, "category", nullable=nullable, values=_words(values))


def _integer(name: str, low: int, high: int) -> Column:
    return Column(name, "integer", low=low, high=high)


def _decimal(name: str, low: int, high: int, nullable: bool = False) -> Column:
    return Column(name, "decimal", nullable=nullable, low=low, high=high)


def _date(name: str) -> Column:
    return Column(name, "date")


_LIBRARY = Theme(
    "library",
    "a public library",
    (
        Table(
            "loans",
            "loan",
            (
                _KEY,
                _link("member_id", "members"),
                _link("book_id", "books", nullable=True),
                _date("loan_date"),
                _integer("duration", 2, 28),
                _decimal("fee", 50, 950, nullable=True),
                _category("status", "returned overdue lost renewed"),
            ),
        ),
        Table(
            "members",
            "member",
            (
                _KEY,
                _NAME,
                _link("branch_id", "branches", nullable=True),
                _category("level", "adult child student senior", nullable=True),
                _category("town", "Aurich Bremen Celle Dorum Emden"),
                _date("join_date"),
                _integer("score", 10, 99),
            ),
            _PEOPLE,
        ),
        Table(
            "branches",
            "branch",
            (
                _KEY,
                _NAME,
                _category("district", "east north south west"),
                _integer("seat_count", 12, 90),
                _date("opening_date"),
            ),
            _PLACES,
        ),
        Table(
            "books",
            "book",
            (
                _KEY,
                Column("title", "name"),
                _category("genre", "crime history poetry science travel", nullable=True),
                _category("language", "Dutch English French German"),
                _integer("page_count", 80, 640),
                _decimal("price", 500, 4900),
            ),
            _TITLES,
        ),
    ),
)

_SHOP = Theme(
    "shop",
    "an online shop",
    (
        Table(
            "orders",
            "order",
            (
                _KEY,
                _link("customer_id", "customers"),
                _link("product_id", "products", nullable=True),
                _date("order_date"),
                _integer("quantity", 1, 12),
                _decimal("shipping_fee", 100, 2500, nullable=True),
                _category("status", "paid shipped cancelled refunded"),
            ),
        ),
        Table(
            "customers",
            "customer",
            (
                _KEY,
                _NAME,
                _link("region_id", "regions", nullable=True),
                _category("tier", "basic silver gold", nullable=True),
                _category("channel", "app phone web store"),
                _date("signup_date"),
                _integer("credit", 20, 95),
            ),
            _PEOPLE,
        ),
        Table(
            "regions",
            "region",
            (
                _KEY,
                _NAME,
                _category("climate", "coastal dry mild snowy"),
                _integer("store_count", 2, 40),
                _date("launch_date"),
            ),
            _PLACES,
        ),
        Table(
            "products",
            "product",
            (
                _KEY,
                _NAME,
                _category("category", "garden kitchen office sports toys", nullable=True),
                _category("supplier", "Arden Borealis Corvin Delmar"),
                _integer("stock", 0, 60),
                _decimal("price", 300, 9900),
            ),
            _TITLES,
        ),
    ),
)

_CLINIC = Theme(
    "clinic",
    "a medical practice",
    (
        Table(
            "visits",
            "visit",
            (
                _KEY,
                _link("patient_id", "patients"),
                _link("doctor_id", "doctors", nullable=True),
                _date("visit_date"),
                _integer("duration", 5, 60),
                _decimal("charge", 1500, 18000, nullable=True),
                _category("reason", "checkup injury vaccination followup"),
            ),
        ),
        Table(
            "patients",
            "patient",
            (
                _KEY,
                _NAME,
                _link("insurer_id", "insurers", nullable=True),
                _category("contact", "email letter phone", nullable=True),
                _category("town", "Alden Brook Carrow Dunmore Eastby"),
                _date("registration_date"),
                _integer("height", 140, 199),
            ),
            _PEOPLE,
        ),
        Table(
            "insurers",
            "insurer",
            (
                _KEY,
                _NAME,
                _category("scheme", "cooperative private public"),
                _integer("office_count", 1, 30),
                _date("founding_date"),
            ),
            _PLACES,
        ),
        Table(
            "doctors",
            "doctor",
            (
                _KEY,
                _NAME,
                _category("specialty", "cardiology dermatology neurology pediatrics", nullable=True),
                _category("shift", "early late night"),
                _integer("experience", 1, 35),
                _decimal("hourly_rate", 4000, 15000),
            ),
            _PEOPLE,
        ),
    ),
)

_COURIER = Theme(
    "courier",
    "a parcel courier",
    (
        Table(
            "parcels",
            "parcel",
            (
                _KEY,
                _link("sender_id", "senders"),
                _link("driver_id", "drivers", nullable=True),
                _date("dispatch_date"),
                _integer("stop_count", 1, 15),
                _decimal("weight", 20, 3000, nullable=True),
                _category("service", "economy express standard sameday"),
            ),
        ),
        Table(
            "senders",
            "sender",
            (
                _KEY,
                _NAME,
                _link("depot_id", "depots", nullable=True),
                _category("sector", "food health media retail", nullable=True),
                _category("billing", "invoice card prepaid"),
                _date("contract_date"),
                _integer("discount", 1, 30),
            ),
            _TITLES,
        ),
        Table(
            "depots",
            "depot",
            (
                _KEY,
                _NAME,
                _category("county", "Arran Bute Caird Dornoch"),
                _integer("dock_count", 2, 24),
                _date("build_date"),
            ),
            _PLACES,
        ),
        Table(
            "drivers",
            "driver",
            (
                _KEY,
                _NAME,
                _category("vehicle", "bicycle lorry scooter van", nullable=True),
                _category("licence", "A B C D"),
                _integer("route_count", 3, 60),
                _decimal("rating", 100, 500),
            ),
            _PEOPLE,
        ),
    ),
)

_CINEMA = Theme(
    "cinema",
    "a film festival",
    (
        Table(
            "screenings",
            "screening",
            (
                _KEY,
                _link("film_id", "films"),
                _link("hall_id", "halls", nullable=True),
                _date("screening_date"),
                _integer("attendance", 8, 160),
                _decimal("revenue", 4000, 99000, nullable=True),
                _category("format", "digital dubbed original subtitled"),
            ),
        ),
        Table(
            "films",
            "film",
            (
                _KEY,
                Column("title", "name"),
                _link("studio_id", "studios", nullable=True),
                _category("genre", "comedy drama horror thriller", nullable=True),
                _category("certificate", "all teen adult"),
                _date("release_date"),
                _integer("runtime", 62, 190),
            ),
            _TITLES,
        ),
        Table(
            "studios",
            "studio",
            (
                _KEY,
                _NAME,
                _category("country", "Austria Brazil Canada Denmark"),
                _integer("staff_count", 5, 99),
                _date("founding_date"),
            ),
            _PLACES,
        ),
        Table(
            "halls",
            "hall",
            (
                _KEY,
                _NAME,
                _category("sound", "dolby mono stereo", nullable=True),
                _category("floor", "basement ground upper"),
                _integer("capacity", 40, 260),
                _decimal("ticket_price", 600, 1900),
            ),
            _PLACES,
        ),
    ),
)

THEMES: dict[str, Theme] = {theme.name: theme for theme in (_CINEMA, _CLINIC, _COURIER, _LIBRARY, _SHOP)}


def theme_called(name: str) -> Theme:
    """The theme called `name`. Raises `UnknownName`."""
    try:
        return THEMES[name]
    except KeyError:
        raise UnknownName("theme", name, THEMES) from None
