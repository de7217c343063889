"""Irrelevant tools about days and deliveries: appointments, holidays, the moon, flights and parcels."""

from __future__ import annotations

import re
from datetime import date, timedelta

from tasks_env.perturbations.pool.base import (
    Distractor,
    bad_date,
    choice,
    date_parameter,
    fold,
    fraction,
    not_found,
    number,
    parse_date,
)
from tasks_env.tools import parameter, tool
from tasks_env.types import JsonObject

_EVENTS = (
    "dentist",
    "team lunch",
    "call with the landlord",
    "piano lesson",
    "gym",
    "parents' evening",
    "haircut",
    "book club",
)
_FIXED_HOLIDAYS = {
    "france": (
        ("New Year's Day", 1, 1),
        ("Labour Day", 5, 1),
        ("Bastille Day", 7, 14),
        ("Christmas Day", 12, 25),
    ),
    "germany": (
        ("New Year's Day", 1, 1),
        ("Labour Day", 5, 1),
        ("Unity Day", 10, 3),
        ("Christmas Day", 12, 25),
    ),
    "ireland": (("New Year's Day", 1, 1), ("Saint Patrick's Day", 3, 17), ("Christmas Day", 12, 25)),
    "norway": (("New Year's Day", 1, 1), ("Constitution Day", 5, 17), ("Christmas Day", 12, 25)),
    "portugal": (("New Year's Day", 1, 1), ("Freedom Day", 4, 25), ("Christmas Day", 12, 25)),
}
_SYNODIC_DAYS = 29.530588853
_NEW_MOON = date(2000, 1, 6)
_PHASES = (
    "new moon",
    "waxing crescent",
    "first quarter",
    "waxing gibbous",
    "full moon",
    "waning gibbous",
    "last quarter",
    "waning crescent",
)
_FLIGHT = re.compile(r"[A-Z]{2} ?[0-9]{1,4}", re.ASCII)
_PARCEL = re.compile(r"[A-Z0-9]{8,20}", re.ASCII)
_FLIGHT_STATES = (
    "on time",
    "boarding",
    "departed",
    "landed",
    "delayed by 25 minutes",
    "delayed by 50 minutes",
)
_PARCEL_STATES = ("label created", "in transit", "at the sorting centre", "out for delivery", "delivered")


def _events(arguments: JsonObject) -> str:
    day = parse_date(arguments["date"])
    if day is None:
        return bad_date(arguments["date"])
    count = int(3 * fraction("events", day.isoformat()))
    hours = sorted({9 + int(9 * fraction("hour", day.isoformat(), i)) for i in range(count)})
    if not hours:
        return f"{day.isoformat()}: no appointments."
    entries = [f"{hour:02d}:00 {choice(_EVENTS, 'event', day.isoformat(), hour)}" for hour in hours]
    return f"{day.isoformat()}: {'; '.join(entries)}."


def easter_sunday(year: int) -> date:
    """Easter in the Gregorian calendar, by the anonymous algorithm (Nature, 1876; after Meeus)."""
    a, (b, c) = year % 19, divmod(year, 100)
    d, e = divmod(b, 4)
    g = (b - (b + 8) // 25 + 1) // 3
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    weekday = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 22 * weekday) // 451
    month, day = divmod(h + weekday - 7 * m + 114, 31)
    return date(year, month, day + 1)


def _holidays(arguments: JsonObject) -> str:
    country = fold(arguments["country"])
    if country not in _FIXED_HOLIDAYS:
        return not_found("country", arguments["country"], (name.title() for name in _FIXED_HOLIDAYS))
    year = int(number(arguments["year"]))
    days = [(date(year, month, day), name) for name, month, day in _FIXED_HOLIDAYS[country]]
    days.append((easter_sunday(year) + timedelta(days=1), "Easter Monday"))
    return f"{country.title()} {year}: " + "; ".join(f"{day.isoformat()} {name}" for day, name in sorted(days))


def _moon(arguments: JsonObject) -> str:
    day = parse_date(arguments["date"])
    if day is None:
        return bad_date(arguments["date"])
    age = ((day - _NEW_MOON).days - 0.26) % _SYNODIC_DAYS
    phase = _PHASES[int(age / _SYNODIC_DAYS * 8 + 0.5) % 8]
    return f"{day.isoformat()}: {phase}, {age:.1f} days after new moon."


def _flight(arguments: JsonObject) -> str:
    flight, day = str(arguments["flight"]).strip().upper(), parse_date(arguments["date"])
    if not _FLIGHT.fullmatch(flight):
        return f"Not a flight number: {arguments['flight']}. Expected two letters and up to four digits."
    if day is None:
        return bad_date(arguments["date"])
    flight = flight.replace(" ", "")
    gate = f"{choice(tuple('ABCD'), 'pier', flight)}{1 + int(30 * fraction('gate', flight, day.isoformat()))}"
    state = choice(_FLIGHT_STATES, "flight", flight, day.isoformat())
    return f"{flight}, {day.isoformat()}: {state}, gate {gate}."


def _parcel(arguments: JsonObject) -> str:
    code = str(arguments["tracking_code"]).strip().upper()
    if not _PARCEL.fullmatch(code):
        return f"Not a tracking code: {arguments['tracking_code']}. Expected 8 to 20 letters and digits."
    return f"Parcel {code}: {choice(_PARCEL_STATES, 'parcel', code)}."


AGENDA = (
    Distractor(
        tool(
            "get_calendar_events",
            "Appointments in the personal calendar on a given day.",
            {"date": date_parameter("The day")},
        ),
        _events,
    ),
    Distractor(
        tool(
            "get_public_holidays",
            "The main public holidays of a country in a year, with their dates.",
            {
                "country": parameter("string", "The country, in English, such as Norway.", maxLength=60),
                "year": parameter("integer", "The calendar year.", minimum=1900, maximum=2199),
            },
        ),
        _holidays,
    ),
    Distractor(
        tool(
            "get_moon_phase",
            "Phase of the moon on a given day and its age in days.",
            {"date": date_parameter("The day")},
        ),
        _moon,
    ),
    Distractor(
        tool(
            "get_flight_status",
            "Status and departure gate of a flight on a given day.",
            {
                "flight": parameter("string", "Airline code and number, such as KL 1024.", maxLength=12),
                "date": date_parameter("The day of departure"),
            },
        ),
        _flight,
    ),
    Distractor(
        tool(
            "track_parcel",
            "Where a parcel is on its way to the recipient.",
            {"tracking_code": parameter("string", "The code on the shipping label.", maxLength=30)},
        ),
        _parcel,
    ),
)
