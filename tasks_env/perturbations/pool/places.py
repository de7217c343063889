"""Irrelevant tools about cities: weather, air, distance, clocks and daylight."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tasks_env.perturbations.pool.base import (
    Distractor,
    bad_date,
    choice,
    date_parameter,
    fold,
    fraction,
    not_found,
    parse_date,
)
from tasks_env.tools import parameter, tool
from tasks_env.types import JsonObject

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_EARTH_RADIUS_KM = 6371.0


@dataclass(frozen=True)
class City:
    """Degrees north and east, hours from UTC (standard time), mean temperature and half its swing in °C."""

    name: str
    latitude: float
    longitude: float
    utc_offset: float
    mean: float
    swing: float


_CITIES = {
    fold(city.name): city
    for city in (
        City("Amsterdam", 52.37, 4.90, 1, 10.5, 8),
        City("Athens", 37.98, 23.73, 2, 18.5, 10),
        City("Bogota", 4.71, -74.07, -5, 14, 1),
        City("Buenos Aires", -34.60, -58.38, -3, 18, 7),
        City("Cairo", 30.04, 31.24, 2, 22, 7.5),
        City("Cape Town", -33.92, 18.42, 2, 17, 4.5),
        City("Chicago", 41.88, -87.63, -6, 10.5, 14),
        City("Dublin", 53.35, -6.26, 0, 9.8, 5),
        City("Helsinki", 60.17, 24.94, 2, 6, 11.5),
        City("Istanbul", 41.01, 28.98, 3, 14.5, 9),
        City("Lima", -12.05, -77.04, -5, 19, 3.5),
        City("Lisbon", 38.72, -9.14, 0, 17.5, 6),
        City("Mexico City", 19.43, -99.13, -6, 17, 2.5),
        City("Mumbai", 19.08, 72.88, 5.5, 27, 3),
        City("Nairobi", -1.29, 36.82, 3, 19, 1.5),
        City("Oslo", 59.91, 10.75, 1, 6.5, 11),
        City("Singapore", 1.35, 103.82, 8, 27.5, 0.7),
        City("Sydney", -33.87, 151.21, 10, 18, 5.5),
        City("Tokyo", 35.68, 139.69, 9, 16, 10.5),
        City("Vancouver", 49.28, -123.12, -8, 10.5, 7.5),
    )
}
_NAMES = tuple(city.name for city in _CITIES.values())
_SKIES = ("clear", "mostly sunny", "partly cloudy", "overcast", "light rain", "showers", "windy")
_BANDS = ((50, "good"), (100, "moderate"), (150, "unhealthy for sensitive groups"))


def _city(text: object) -> City | None:
    return _CITIES.get(fold(text))


def _no_city(text: object) -> str:
    return not_found("city", text, _NAMES)


def _city_parameter(description: str) -> dict[str, object]:
    return parameter("string", description, maxLength=60)


def _weather(arguments: JsonObject) -> str:
    city, day = _city(arguments["city"]), parse_date(arguments["date"])
    if city is None:
        return _no_city(arguments["city"])
    if day is None:
        return bad_date(arguments["date"])
    peak = 200 if city.latitude >= 0 else 17
    season = math.cos(2 * math.pi * (day.timetuple().tm_yday - peak) / 365)
    middle = city.mean + city.swing * season + 6 * (fraction("weather", city.name, day.isoformat()) - 0.5)
    half = 2.5 + 2.5 * fraction("range", city.name, day.isoformat())
    sky = choice(_SKIES, "sky", city.name, day.isoformat())
    wind = 5 + round(25 * fraction("wind", city.name, day.isoformat()))
    return (
        f"{city.name}, {day.isoformat()}: {sky}, low {round(middle - half)} °C, "
        f"high {round(middle + half)} °C, wind {wind} km/h."
    )


def _air_quality(arguments: JsonObject) -> str:
    city = _city(arguments["city"])
    if city is None:
        return _no_city(arguments["city"])
    index = 15 + round(110 * fraction("air", city.name))
    band = next((name for limit, name in _BANDS if index <= limit), "unhealthy")
    return f"{city.name}: air quality index {index} ({band}); PM2.5 {round(index * 0.3)} µg/m³."


def _distance(arguments: JsonObject) -> str:
    first, second = _city(arguments["from_city"]), _city(arguments["to_city"])
    if first is None or second is None:
        return _no_city(arguments["from_city"] if first is None else arguments["to_city"])
    kilometres = great_circle_km(first.latitude, first.longitude, second.latitude, second.longitude)
    return f"{first.name} to {second.name}: {round(kilometres)} km along the great circle."


def great_circle_km(latitude: float, longitude: float, other_latitude: float, other_longitude: float) -> float:
    """Distance in km on a sphere by the haversine formula; arguments in degrees."""
    phi, other_phi = math.radians(latitude), math.radians(other_latitude)
    half = math.sin((other_phi - phi) / 2) ** 2
    half += math.cos(phi) * math.cos(other_phi) * math.sin(math.radians(other_longitude - longitude) / 2) ** 2
    return 2 * _EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, half)))


def _time_zone(arguments: JsonObject) -> str:
    first, second = _city(arguments["from_city"]), _city(arguments["to_city"])
    if first is None or second is None:
        return _no_city(arguments["from_city"] if first is None else arguments["to_city"])
    match = _CLOCK.fullmatch(str(arguments["time"]))
    if match is None:
        return f"Not a time of day: {arguments['time']}. Expected the form HH:MM, from 00:00 to 23:59."
    minutes = int(match[1]) * 60 + int(match[2]) + round(60 * (second.utc_offset - first.utc_offset))
    day = {-1: " on the day before", 0: "", 1: " on the next day"}[minutes // 1440]
    return f"{match[0]} in {first.name} is {_clock(minutes)} in {second.name}{day} (standard time)."


def _daylight(arguments: JsonObject) -> str:
    city, day = _city(arguments["city"]), parse_date(arguments["date"])
    if city is None:
        return _no_city(arguments["city"])
    if day is None:
        return bad_date(arguments["date"])
    declination = -math.radians(23.44) * math.cos(2 * math.pi * (day.timetuple().tm_yday + 10) / 365)
    phi = math.radians(city.latitude)
    # -0.833 degrees: refraction and the radius of the sun's disc.
    cosine = (math.sin(math.radians(-0.833)) - math.sin(phi) * math.sin(declination)) / (
        math.cos(phi) * math.cos(declination)
    )
    half_day = math.degrees(math.acos(max(-1.0, min(1.0, cosine)))) * 4
    noon = 720 - 4 * city.longitude + 60 * city.utc_offset
    return (
        f"{city.name}, {day.isoformat()}: sunrise about {_clock(round(noon - half_day))}, "
        f"sunset about {_clock(round(noon + half_day))} (local standard time)."
    )


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


PLACES = (
    Distractor(
        tool(
            "get_weather_forecast",
            "Weather for a city on a given day: sky, lowest and highest temperature in Celsius, wind.",
            {
                "city": _city_parameter("The city, in English, such as Lisbon."),
                "date": date_parameter("The day"),
            },
        ),
        _weather,
    ),
    Distractor(
        tool(
            "get_air_quality",
            "Typical air quality index of a city, with the fine particle concentration.",
            {"city": _city_parameter("The city, in English, such as Nairobi.")},
        ),
        _air_quality,
    ),
    Distractor(
        tool(
            "get_city_distance",
            "Distance between two cities in kilometres, as the crow flies.",
            {
                "from_city": _city_parameter("The city to start from, in English."),
                "to_city": _city_parameter("The city to arrive at, in English."),
            },
        ),
        _distance,
    ),
    Distractor(
        tool(
            "convert_time_zone",
            "What the clock shows in one city at a given time in another. Daylight saving is ignored.",
            {
                "time": parameter("string", "The time of day in the first city, as HH:MM.", maxLength=5),
                "from_city": _city_parameter("The city whose time is given, in English."),
                "to_city": _city_parameter("The city whose time is wanted, in English."),
            },
        ),
        _time_zone,
    ),
    Distractor(
        tool(
            "get_sunrise_sunset",
            "Times of sunrise and sunset in a city on a given day, in local standard time.",
            {
                "city": _city_parameter("The city, in English, such as Oslo."),
                "date": date_parameter("The day"),
            },
        ),
        _daylight,
    ),
)
