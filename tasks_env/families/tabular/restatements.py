"""The right answer in other bytes that the canonical form takes for the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tasks_env.families.base import Proposal
from tasks_env.families.tabular.answer import Answer, Lines, answer_of
from tasks_env.types import FinalState, Instance


def _with_numbers(answer: Answer, restate: Callable[[str], str]) -> Lines:
    """The rows with every number written in another way."""
    numeric = [column.kind == "number" for column in answer.columns]
    return [
        [restate(text) if number and text else text for text, number in zip(line, numeric, strict=True)]
        for line in answer.lines
    ]


def _zeros_at_the_end(text: str) -> str:
    return f"{text}00" if "." in text else f"{text}.00"


def _zeros_in_front(text: str) -> str:
    """Two zeros more, and a minus if the number is zero."""
    digits = text.removeprefix("-")
    minus = "-" if digits != text or not digits.strip("0.") else ""
    return f"{minus}00{digits}"


def _without_zeros(text: str) -> str:
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _quoted(answer: Answer, lines: Lines, *, numbers: bool) -> str:
    """Every field in quotes, or those of the number columns and the header without."""
    bare = [column.kind == "number" and not numbers for column in answer.columns]
    rows = [[text if plain else _in_quotes(text) for text, plain in zip(line, bare, strict=True)] for line in lines]
    header = [_in_quotes(name) if numbers else name for name in answer.header]
    return "".join(f"{','.join(fields)}\n" for fields in (header, *rows))


def _in_quotes(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _all_at_once(answer: Answer) -> str:
    lines = _with_numbers(answer, lambda text: _zeros_in_front(_zeros_at_the_end(text)))
    return "\ufeff\n" + _quoted(answer, lines, numbers=True).replace("\n", "\r\n\r\n").rstrip("\r\n")


_RESTATEMENTS: dict[str, Callable[[Answer], str]] = {
    "typed as it is": lambda answer: answer.text(),
    "CRLF line ends": lambda answer: answer.text().replace("\n", "\r\n"),
    "CR line ends": lambda answer: answer.text().replace("\n", "\r"),
    "no last line end": lambda answer: answer.text().removesuffix("\n"),
    "byte-order mark": lambda answer: f"\ufeff{answer.text()}",
    "blank lines": lambda answer: "\n" + answer.text().replace("\n", "\n\n"),
    "every field quoted": lambda answer: _quoted(answer, answer.lines, numbers=True),
    "text fields quoted": lambda answer: _quoted(answer, answer.lines, numbers=False),
    "zeros added at the end": lambda answer: answer.text(lines=_with_numbers(answer, _zeros_at_the_end)),
    "zeros added in front": lambda answer: answer.text(lines=_with_numbers(answer, _zeros_in_front)),
    "zeros left out": lambda answer: answer.text(lines=_with_numbers(answer, _without_zeros)),
    "all at once": _all_at_once,
}

RESTATEMENT_OPERATORS = tuple(_RESTATEMENTS)


def restatements(instance: Instance, right: FinalState) -> Iterator[Proposal]:
    """Every restatement of the right answer that differs from it."""
    answer = answer_of(instance, right)
    plain = answer.text()
    for operator, restate in _RESTATEMENTS.items():
        text = restate(answer)
        if text != plain or operator == "typed as it is":
            yield Proposal(operator=operator, state=answer.state(text))
