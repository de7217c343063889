"""Realistic small texts: settings, notes, logs and tables, from a generator that is passed in."""

from __future__ import annotations

import random
from collections.abc import Sequence

PEOPLE = ("Ana", "Bram", "Chloé", "Dana", "Emeka", "Farid", "Greta", "Hiro", "Ines", "José", "Kaya", "Lena")
TEAMS = ("billing", "checkout", "search", "mobile", "support", "platform", "growth", "design")
SERVICES = ("api", "worker", "gateway", "mailer", "cache", "scheduler", "auth", "import")
CITIES = ("Lisbon", "Oslo", "Turin", "Malmö", "Ghent", "Porto", "Riga", "Cork", "Kraków", "Basel")
THINGS = (
    "desk lamp",
    "label printer",
    "badge reader",
    "projector",
    "standing desk",
    "headset",
    "router",
    "scanner",
)
TASKS = (
    "renew the certificate",
    "call the supplier",
    "order new badges",
    "update the wiki",
    "book the big room",
    "check the invoices",
    "rotate the keys",
    "clean up old branches",
    "send the survey",
    "test the backup",
    "translate the manual",
    "review the budget",
)
EVENTS = (
    "request served",
    "session opened",
    "session closed",
    "cache refreshed",
    "job queued",
    "job finished",
    "mail sent",
    "index rebuilt",
)
FAILURES = (
    "card declined",
    "connection reset",
    "disk nearly full",
    "lock not released",
    "token expired",
    "upstream did not answer",
)
SECTIONS = ("server", "database", "queue", "mail", "metrics", "storage")
INTEGER_KEYS = ("timeout", "retries", "workers", "port", "batch_size", "max_items", "ttl")
WORD_KEYS: dict[str, tuple[str, ...]] = {
    "mode": ("live", "readonly", "maintenance", "trial"),
    "region": ("north", "south", "east", "west"),
    "level": ("debug", "info", "warning", "quiet"),
    "plan": ("basic", "team", "business", "free"),
    "format": ("json", "xml", "plain", "yaml"),
}


def integer(rng: random.Random) -> str:
    """A setting's whole number."""
    return str(rng.randint(2, 90))


def date(rng: random.Random) -> str:
    """An ISO date of 2024 or 2025."""
    return f"{rng.randint(2024, 2025)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def task(rng: random.Random) -> str:
    """Something to do, with who does it."""
    return f"{rng.choice(TASKS)} ({rng.choice(PEOPLE)})"


def setting_value(rng: random.Random, key: str) -> str:
    """A value that suits `key`."""
    return rng.choice(WORD_KEYS[key]) if key in WORD_KEYS else integer(rng)


def section(rng: random.Random, name: str, count: int, *, without: str) -> list[str]:
    """A `[name]` heading and `count` settings, none of them called `without`."""
    keys = [key for key in (*INTEGER_KEYS, *WORD_KEYS) if key != without]
    chosen = rng.sample(keys, count)
    return [f"[{name}]", *(f"{key} = {setting_value(rng, key)}" for key in chosen)]


def config(rng: random.Random) -> list[str]:
    """A configuration file of two sections."""
    first, second = rng.sample(SECTIONS, 2)
    return [*section(rng, first, 2, without=""), *section(rng, second, 2, without="")]


def notes(rng: random.Random) -> list[str]:
    """Notes of a meeting."""
    present = ", ".join(rng.sample(PEOPLE, 3))
    return [
        f"# {rng.choice(TEAMS).capitalize()} meeting, {date(rng)}",
        f"Present: {present}",
        f"- {rng.choice(PEOPLE)} asked about the {rng.choice(THINGS)}",
        f"- next meeting in {rng.choice(CITIES)}",
    ]


def log_line(rng: random.Random, level: str, message: str) -> str:
    """A log line without its time: times are put in by `timed`."""
    return f"{level} {rng.choice(SERVICES)}: {message}"


def timed(rng: random.Random, lines: Sequence[str]) -> list[str]:
    """Log lines with times of one day that never go back."""
    day = date(rng)
    minute = rng.randint(0, 600)
    stamped = []
    for line in lines:
        minute += rng.randint(1, 25)
        stamped.append(f"{day} {minute // 60:02d}:{minute % 60:02d} {line}")
    return stamped


def log(rng: random.Random) -> list[str]:
    """A short log without failures."""
    return timed(rng, [log_line(rng, "INFO", rng.choice(EVENTS)) for _ in range(4)])


def table(rng: random.Random) -> list[str]:
    """A CSV list of things in stock."""
    rows = [f"{thing},{rng.choice(CITIES)},{rng.randint(1, 40)}" for thing in rng.sample(THINGS, 3)]
    return ["item,city,amount", *rows]


KINDS = {"ini": config, "md": notes, "log": log, "csv": table}
"""File name extension → the maker of its lines."""

STEMS: dict[str, tuple[str, ...]] = {
    "ini": ("app", "service", "worker", "gateway", "mailer", "cache", "site", "jobs"),
    "md": ("meeting", "standup", "retro", "ideas", "handover", "kickoff", "review", "journal"),
    "log": ("server", "import", "nightly", "backup", "deploy", "access", "sync", "cron"),
    "csv": ("orders", "stock", "contacts", "devices", "rooms", "visits", "assets", "parcels"),
}
FOLDERS: dict[str, tuple[str, ...]] = {
    "ini": ("config", "settings", "services", "deploy", "ops", "infra"),
    "md": ("notes", "docs", "projects", "teams", "wiki", "minutes"),
    "log": ("logs", "monitoring", "runs", "history", "traces", "jobs"),
    "csv": ("data", "exports", "inventory", "sales", "lists", "tables"),
}
"""File name extension → top folders where such files are at home."""

OUTPUT_FOLDERS = ("reports", "archive", "results", "outbox", "summary", "handoff", "storage", "shared")
SUBFOLDERS = (
    *(
        "alpha",
        "berlin",
        "core",
        "drafts",
        "east",
        "field",
        "guest",
        "harbor",
        "intern",
        "june",
        "kiosk",
        "labs",
    ),
    *(
        "main",
        "north",
        "old",
        "pilot",
        "quarter",
        "remote",
        "south",
        "team",
        "urban",
        "vendor",
        "west",
        "yard",
    ),
)
