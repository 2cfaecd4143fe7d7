"""`ServiceSet`: functions that the window calls, typed, and replaced by fakes in tests."""

from typing import Any, Self


class ServiceSet:
    """A set of services: each subclass names functions as static methods.

    A type checker sees each with the signature of the function that it is, so a wrong argument is
    an error. ``Set(name=other)`` has another function under that name.

    Raises
    ------
    TypeError
        If there is no service of that name.
    """

    def __init__(self, **others: Any) -> None:
        unknown = [name for name in others if not hasattr(type(self), name)]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no service {', '.join(unknown)}")
        self.__dict__.update(others)

    def replacing(self, **others: Any) -> Self:
        """Return the same set with other functions under these names."""
        return type(self)(**{**self.__dict__, **others})
