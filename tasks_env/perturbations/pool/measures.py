"""Irrelevant tools about measures: units, colours and food."""

from __future__ import annotations

import colorsys
import re

from tasks_env.perturbations.pool.base import Distractor, fold, not_found, number, plain
from tasks_env.tools import parameter, tool
from tasks_env.types import JsonObject

_UNITS = {
    "mm": ("length", 0.001),
    "cm": ("length", 0.01),
    "m": ("length", 1.0),
    "km": ("length", 1000.0),
    "in": ("length", 0.0254),
    "ft": ("length", 0.3048),
    "yd": ("length", 0.9144),
    "mi": ("length", 1609.344),
    "g": ("mass", 0.001),
    "kg": ("mass", 1.0),
    "oz": ("mass", 0.028349523125),
    "lb": ("mass", 0.45359237),
    "ml": ("volume", 0.001),
    "l": ("volume", 1.0),
    "cup": ("volume", 0.2365882365),
    "gal": ("volume", 3.785411784),
    "m/s": ("speed", 1.0),
    "km/h": ("speed", 1 / 3.6),
    "mph": ("speed", 0.44704),
    "c": ("temperature", 1.0),
    "f": ("temperature", 1.0),
    "k": ("temperature", 1.0),
}
_FOODS = {
    "almonds": (579, 21.2, 21.6, 49.9),
    "apple": (52, 0.3, 13.8, 0.2),
    "banana": (89, 1.1, 22.8, 0.3),
    "bread": (265, 9.0, 49.0, 3.2),
    "broccoli": (34, 2.8, 6.6, 0.4),
    "carrot": (41, 0.9, 9.6, 0.2),
    "cheddar": (403, 24.9, 1.3, 33.1),
    "chicken": (165, 31.0, 0.0, 3.6),
    "egg": (155, 12.6, 1.1, 10.6),
    "lentils": (116, 9.0, 20.1, 0.4),
    "milk": (61, 3.2, 4.8, 3.3),
    "oats": (389, 16.9, 66.3, 6.9),
    "potato": (77, 2.0, 17.5, 0.1),
    "rice": (130, 2.7, 28.2, 0.3),
    "salmon": (208, 20.4, 0.0, 13.4),
    "tomato": (18, 0.9, 3.9, 0.2),
}
_HEX = re.compile(r"#?([0-9a-fA-F]{6})", re.ASCII)


def _units(arguments: JsonObject) -> str:
    source, target = fold(arguments["from_unit"]), fold(arguments["to_unit"])
    for asked, unit in ((arguments["from_unit"], source), (arguments["to_unit"], target)):
        if unit not in _UNITS:
            return not_found("unit", asked, _UNITS)
    kind, factor = _UNITS[source]
    other_kind, other_factor = _UNITS[target]
    if kind != other_kind:
        return f"{source} is a unit of {kind} and {target} a unit of {other_kind}; they do not convert."
    value = number(arguments["value"])
    if kind == "temperature":
        converted = _from_celsius(_to_celsius(value, source), target)
    else:
        converted = value * factor / other_factor
    return f"{plain(value, 6)} {source} = {plain(converted, 6)} {target}"


def _to_celsius(value: float, unit: str) -> float:
    return {"c": value, "f": (value - 32) / 1.8, "k": value - 273.15}[unit]


def _from_celsius(value: float, unit: str) -> float:
    return {"c": value, "f": value * 1.8 + 32, "k": value + 273.15}[unit]


def _color(arguments: JsonObject) -> str:
    match = _HEX.fullmatch(str(arguments["color"]))
    if match is None:
        return f"Not a colour: {arguments['color']}. Expected six hexadecimal digits, such as #3A7BD5."
    red, green, blue = bytes.fromhex(match[1])
    hue, lightness, saturation = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
    return (
        f"#{match[1].upper()}: rgb({red}, {green}, {blue}), "
        f"hsl({round(hue * 360) % 360}, {round(saturation * 100)}%, {round(lightness * 100)}%), "
        f"complement #{255 - red:02X}{255 - green:02X}{255 - blue:02X}."
    )


def _nutrition(arguments: JsonObject) -> str:
    food = fold(arguments["food"])
    if food not in _FOODS:
        return not_found("food", arguments["food"], _FOODS)
    grams = number(arguments["grams"])
    energy, protein, carbohydrate, fat = (value * grams / 100 for value in _FOODS[food])
    return (
        f"{plain(grams, 1)} g of {food}: {energy:.0f} kcal, protein {protein:.1f} g, "
        f"carbohydrate {carbohydrate:.1f} g, fat {fat:.1f} g."
    )


MEASURES = (
    Distractor(
        tool(
            "convert_units",
            "Convert a physical quantity between units of length, mass, volume, speed or temperature.",
            {
                "value": parameter("number", "The quantity in the given unit.", minimum=-1e12, maximum=1e12),
                "from_unit": parameter("string", "The given unit, such as km, lb, gal or F.", maxLength=12),
                "to_unit": parameter("string", "The wanted unit, such as mi, kg, l or C.", maxLength=12),
            },
        ),
        _units,
    ),
    Distractor(
        tool(
            "convert_color",
            "Describe a hexadecimal colour as RGB and HSL, with its complementary colour.",
            {"color": parameter("string", "Six hexadecimal digits, such as #3A7BD5.", maxLength=12)},
        ),
        _color,
    ),
    Distractor(
        tool(
            "get_nutrition_facts",
            "Energy, protein, carbohydrate and fat in a portion of a common food.",
            {
                "food": parameter("string", "The food, in English, such as oats.", maxLength=60),
                "grams": parameter("number", "Weight of the portion in grams.", minimum=0, maximum=100000),
            },
        ),
        _nutrition,
    ),
)
