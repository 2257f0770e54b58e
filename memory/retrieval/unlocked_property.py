"""A cached property for objects that only one thread uses.

In Python 3.11, `functools.cached_property` has one lock for all instances: queries would wait for each other's encoder, and for
each other's pauses.
"""

from functools import cached_property
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")


class unlocked_property(cached_property[T]):
    """A `cached_property` without a lock."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | T:
        if instance is None:
            return self
        value = vars(instance)[str(self.attrname)] = self.func(instance)
        return value
