"""Remembering what is worked out from an object that cannot be a key itself, such as a world of nested dicts."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Same(Generic[T]):
    """A key that equals only keys of the very same object, which it keeps alive; the object must not be changed.

    For `functools.lru_cache`, where the same instance is opened again and again.
    """

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value
