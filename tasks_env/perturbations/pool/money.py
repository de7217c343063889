"""Irrelevant tools about money: exchange rates, stock quotes and loans."""

from __future__ import annotations

import math

from tasks_env.perturbations.pool.base import (
    Distractor,
    bad_date,
    date_parameter,
    fraction,
    not_found,
    number,
    parse_date,
)
from tasks_env.tools import parameter, tool
from tasks_env.types import JsonObject

_PER_DOLLAR = {
    "AUD": 1.52,
    "BRL": 5.41,
    "CAD": 1.37,
    "CHF": 0.88,
    "CNY": 7.24,
    "EUR": 0.92,
    "GBP": 0.79,
    "INR": 83.4,
    "JPY": 151.2,
    "MXN": 17.1,
    "NOK": 10.7,
    "SEK": 10.4,
    "USD": 1.0,
    "ZAR": 18.6,
}
_QUOTES = {
    "ABRX": ("Abrex Mining", 34.0),
    "CLDN": ("Caledon Foods", 58.5),
    "FJRD": ("Fjord Shipping", 21.3),
    "HLIO": ("Helio Power", 112.0),
    "KSTL": ("Kestrel Airways", 9.8),
    "MRDN": ("Meridian Optics", 76.4),
    "NMBS": ("Nimbus Telecom", 45.1),
    "ORCH": ("Orchard Retail", 27.9),
    "QRTZ": ("Quartz Semiconductors", 203.0),
    "TMBR": ("Timberline Homes", 63.2),
}


def _currency(arguments: JsonObject) -> str:
    source, target = (str(arguments[key]).strip().upper() for key in ("from_currency", "to_currency"))
    for code in (source, target):
        if code not in _PER_DOLLAR:
            return not_found("currency", code, _PER_DOLLAR)
    amount = number(arguments["amount"])
    rate = _PER_DOLLAR[target] / _PER_DOLLAR[source]
    return f"{amount:.2f} {source} = {amount * rate:.2f} {target} (rate {rate:.4f})."


def _stock(arguments: JsonObject) -> str:
    ticker, day = str(arguments["ticker"]).strip().upper(), parse_date(arguments["date"])
    if ticker not in _QUOTES:
        return not_found("ticker", ticker, _QUOTES)
    if day is None:
        return bad_date(arguments["date"])
    company, base = _QUOTES[ticker]
    price = base * (0.9 + 0.2 * fraction("stock", ticker, day.isoformat()))
    change = 4 * (fraction("change", ticker, day.isoformat()) - 0.5)
    return f"{ticker} ({company}), {day.isoformat()}: last close {price:.2f} USD, {change:+.1f}%."


def _loan(arguments: JsonObject) -> str:
    amount, years = number(arguments["amount"]), number(arguments["years"])
    monthly, payments = number(arguments["yearly_rate"]) / 1200, round(years) * 12
    discount = -math.expm1(-payments * math.log1p(monthly))
    payment = amount * monthly / discount if monthly else amount / payments
    interest = payment * payments - amount
    return f"{payments} monthly payments of {payment:.2f}; interest in all {interest:.2f}."


MONEY = (
    Distractor(
        tool(
            "convert_currency",
            "Convert an amount of money from one currency to another at the reference rate.",
            {
                "amount": parameter("number", "How much money.", minimum=0, maximum=1e12),
                "from_currency": parameter("string", "ISO code of the given currency, such as EUR.", maxLength=8),
                "to_currency": parameter("string", "ISO code of the wanted currency, such as JPY.", maxLength=8),
            },
        ),
        _currency,
    ),
    Distractor(
        tool(
            "get_stock_quote",
            "Latest closing price of a share as of a given day, with the change over the last session.",
            {
                "ticker": parameter("string", "The ticker symbol, such as HLIO.", maxLength=8),
                "date": date_parameter("The day"),
            },
        ),
        _stock,
    ),
    Distractor(
        tool(
            "estimate_loan_payment",
            "Monthly payment and total interest of a loan that is paid back in equal instalments.",
            {
                "amount": parameter("number", "The sum borrowed.", minimum=0, maximum=1e12),
                "yearly_rate": parameter("number", "Interest in percent per year.", minimum=0, maximum=100),
                "years": parameter("integer", "Duration in whole years.", minimum=1, maximum=50),
            },
        ),
        _loan,
    ),
)
