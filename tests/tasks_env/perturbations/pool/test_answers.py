"""The irrelevant tools really do what they say, by figures from elsewhere."""

from __future__ import annotations

import re

import pytest
from dateutil.easter import easter  # type: ignore[import-untyped]
from pydantic import JsonValue

from tasks_env.perturbations.distractors import POOL
from tasks_env.perturbations.pool.agenda import easter_sunday
from tasks_env.perturbations.pool.places import great_circle_km


def answer(name: str, **arguments: JsonValue) -> str:
    return POOL[name].answer(arguments)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (26.2, "mi", "km", "42.164813"),
        (1, "yd", "ft", "3"),
        (100, "C", "F", "212"),
        (-40, "f", "c", "-40"),
        (0, "K", "C", "-273.15"),
        (1, "lb", "oz", "16"),
        (1, "gal", "cup", "16"),
        (36, "km/h", "m/s", "10"),
        (60, "mph", "km/h", "96.56064"),
    ],
)
def test_units_convert_by_their_definitions(value: float, source: str, target: str, expected: str) -> None:
    text = answer("convert_units", value=value, from_unit=source, to_unit=target)
    assert text.split(" = ")[1].split()[0] == expected


def test_units_of_different_kinds_do_not_convert() -> None:
    text = answer("convert_units", value=1, from_unit="km", to_unit="kg")
    assert text == "km is a unit of length and kg a unit of mass; they do not convert."
    assert answer("convert_units", value=1, from_unit="parsec", to_unit="km").startswith("No unit called parsec.")


def test_easter_agrees_with_dateutil() -> None:
    years = range(1900, 2200)
    assert [easter_sunday(year) for year in years] == [easter(year) for year in years]


def test_holidays_come_in_the_order_of_the_year() -> None:
    text = answer("get_public_holidays", country="norway", year=2024)
    assert text == (
        "Norway 2024: 2024-01-01 New Year's Day; 2024-04-01 Easter Monday; "
        "2024-05-17 Constitution Day; 2024-12-25 Christmas Day"
    )


@pytest.mark.parametrize(
    ("day", "phase"),
    [
        ("2017-08-21", "new moon"),
        ("2024-04-08", "new moon"),
        ("2018-07-27", "full moon"),
        ("2022-11-08", "full moon"),
        ("2024-01-18", "first quarter"),
        ("2024-12-22", "last quarter"),
    ],
)
def test_the_moon_agrees_with_known_eclipses_and_quarters(day: str, phase: str) -> None:
    assert f"{day}: {phase}," in answer("get_moon_phase", date=day)


@pytest.mark.parametrize(
    ("city", "day", "sunrise", "sunset"),
    [
        ("Oslo", "2024-06-20", "02:54", "21:44"),
        ("Oslo", "2024-12-21", "09:18", "15:12"),
        ("Singapore", "2024-03-20", "07:09", "19:16"),
        ("Sydney", "2024-12-21", "04:41", "19:05"),
    ],
)
def test_daylight_is_within_twenty_minutes_of_almanacs(city: str, day: str, sunrise: str, sunset: str) -> None:
    shown = re.findall(r"\d\d:\d\d", answer("get_sunrise_sunset", city=city, date=day))
    for ours, published in zip(shown, (sunrise, sunset), strict=True):
        assert abs(minutes(ours) - minutes(published)) <= 20


def minutes(clock: str) -> int:
    hours, rest = clock.split(":")
    return int(hours) * 60 + int(rest)


def test_a_quarter_of_the_globe_is_ten_thousand_kilometres() -> None:
    assert great_circle_km(0, 0, 90, 0) == pytest.approx(10_007.5, abs=0.1)
    assert great_circle_km(0, 0, 0, 180) == pytest.approx(20_015.1, abs=0.1)
    assert great_circle_km(10, 20, 10, 20) == 0
    assert "Oslo to Cairo: 3" in answer("get_city_distance", from_city="oslo", to_city=" CAIRO ")


@pytest.mark.parametrize(
    ("time", "source", "target", "expected"),
    [
        ("12:00", "Oslo", "Mumbai", "16:30 in Mumbai (standard time)"),
        ("23:15", "Tokyo", "Vancouver", "06:15 in Vancouver (standard time)"),
        ("20:00", "Lima", "Sydney", "11:00 in Sydney on the next day"),
        ("01:00", "Sydney", "Chicago", "09:00 in Chicago on the day before"),
    ],
)
def test_clocks_differ_by_their_zones(time: str, source: str, target: str, expected: str) -> None:
    assert f"{time} in {source} is {expected}" in answer(
        "convert_time_zone", time=time, from_city=source, to_city=target
    )


@pytest.mark.parametrize(("amount", "rate", "years"), [(200_000, 4.5, 30), (1000, 0, 1), (5000, 100, 2)])
def test_a_loan_is_paid_back_by_its_payments(amount: float, rate: float, years: int) -> None:
    text = answer("estimate_loan_payment", amount=amount, yearly_rate=rate, years=years)
    match = re.fullmatch(r"(\d+) monthly payments of ([\d.]+); interest in all ([\d.]+)\.", text)
    assert match is not None
    balance = float(amount)
    for _ in range(int(match[1])):
        balance = balance * (1 + rate / 1200) - float(match[2])
    growth = (1 + rate / 1200) ** (12 * years)
    assert abs(balance) <= 0.005 * 12 * years * growth
    assert float(match[3]) == pytest.approx(int(match[1]) * float(match[2]) - amount, abs=0.01 * int(match[1]))


def test_money_converts_there_and_back() -> None:
    there = answer("convert_currency", amount=1000, from_currency="eur", to_currency="jpy")
    amount = float(there.split(" = ")[1].split()[0])
    back = answer("convert_currency", amount=amount, from_currency="JPY", to_currency="EUR")
    assert back.split(" = ")[1].startswith("1000.00 EUR")
    assert answer("convert_currency", amount=1, from_currency="XYZ", to_currency="EUR").startswith("No currency")


@pytest.mark.parametrize(
    ("color", "expected"),
    [
        ("#FF0000", "#FF0000: rgb(255, 0, 0), hsl(0, 100%, 50%), complement #00FFFF."),
        ("336699", "#336699: rgb(51, 102, 153), hsl(210, 50%, 40%), complement #CC9966."),
    ],
)
def test_colours_convert(color: str, expected: str) -> None:
    assert answer("convert_color", color=color) == expected


def test_nutrition_scales_with_the_portion() -> None:
    assert answer("get_nutrition_facts", food="Banana", grams=200).startswith(
        "200 g of banana: 178 kcal, protein 2.2 g"
    )


def test_a_share_is_quoted_within_ten_percent_of_its_level() -> None:
    texts = [answer("get_stock_quote", ticker="hlio", date=f"2024-06-{day:02d}") for day in range(1, 31)]
    prices = [float(re.findall(r"last close ([\d.]+) USD", text)[0]) for text in texts]
    assert all(100.8 <= price <= 123.2 for price in prices)
    assert len(set(prices)) > 25
    assert answer("get_stock_quote", ticker="AAAA", date="2024-06-01").startswith("No ticker called AAAA.")


def test_weather_follows_the_seasons_of_the_hemisphere() -> None:
    def high(city: str, month: int) -> float:
        days = [answer("get_weather_forecast", city=city, date=f"2024-{month:02d}-{day:02d}") for day in range(1, 29)]
        return sum(int(re.findall(r"high (-?\d+)", text)[0]) for text in days) / len(days)

    assert high("Oslo", 7) > high("Oslo", 1) + 15
    assert high("Sydney", 1) > high("Sydney", 7) + 6


def test_the_phrase_book_and_the_dictionary_look_words_up() -> None:
    assert (
        answer("translate_phrase", phrase="Good  Morning", language="German") == "good morning (German): guten Morgen"
    )
    assert answer("translate_phrase", phrase="x", language="Latin").startswith("No language called Latin.")
    assert answer("define_word", word="isthmus").startswith("isthmus, noun: a narrow strip of land")
    assert answer("define_word", word="blorp") == "The dictionary has no entry for: blorp."


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_weather_forecast", {"city": "Oslo", "date": "2024-02-30"}),
        ("get_calendar_events", {"date": "1 May"}),
        ("get_flight_status", {"flight": "KL 1024", "date": "20240501"}),
    ],
)
def test_a_bad_date_is_explained(name: str, arguments: dict[str, JsonValue]) -> None:
    assert answer(name, **arguments).startswith(f"Not a calendar date: {arguments['date']}.")


def test_codes_are_checked_for_their_form() -> None:
    assert answer("track_parcel", tracking_code="JD0146000034").startswith("Parcel JD0146000034: ")
    assert answer("track_parcel", tracking_code="abc").startswith("Not a tracking code: abc.")
    assert answer("get_flight_status", flight="kl1024", date="2024-05-01").startswith("KL1024, 2024-05-01: ")
    assert answer("get_flight_status", flight="1024", date="2024-05-01").startswith("Not a flight number: 1024.")
    assert answer("get_air_quality", city="Atlantis").startswith("No city called Atlantis. Available: Amsterdam, ")
