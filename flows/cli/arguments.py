"""What a word of the command line may be, checked as it is read."""

from __future__ import annotations

import argparse
import re


def seed(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"a seed is a whole number from 0 to 2^63 - 1, got {text!r}")
    return int(text)


def count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to 999999, got {text!r}")
    return int(text)


def address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+\S*", text):
        raise argparse.ArgumentTypeError(f"an address begins with http:// or https://, got {text!r}")
    return text


def port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a whole number from 0 to 65535, got {text!r}")
    return int(text)


def fraction(text: str) -> float:
    if not re.fullmatch(r"[0-9]*\.?[0-9]+", text, re.ASCII) or not 0 <= float(text) < 1:
        raise argparse.ArgumentTypeError(f"a fraction from 0 to below 1, such as 0.03 for 3 points, got {text!r}")
    return float(text)
