"""Settings that explain themselves: default, range, unit, meaning and source in one place."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from napari_mamamia.core.provenance import Setting

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One number a user may change: its default and range in `unit`, what it does, and why."""

    name: str
    default: float
    low: float
    high: float
    unit: str
    about: str
    source: str


def setting(default: float, low: float, high: float, unit: str, about: str, source: str) -> Any:
    """Return the dataclass field of a setting; see `SettingInfo`."""
    what = {"low": low, "high": high, "unit": unit, "about": about, "source": source}
    return field(default=default, metadata=what)


def described(settings: "DataclassInstance") -> tuple[SettingInfo, ...]:
    """Return every setting of a settings class, those of nested settings under their own names."""
    return tuple(info for info, _ in _walk_settings(settings))


def values_of(settings: "DataclassInstance") -> tuple[tuple[str, Setting], ...]:
    """Return (name, value) of every setting, as provenance keeps them."""
    return tuple((info.name, value) for info, value in _walk_settings(settings))


def checked(settings: "DataclassInstance") -> None:
    """Raise `ValueError` for the first setting that is not a number within its range."""
    for info, value in _walk_settings(settings):
        if not math.isfinite(value) or not info.low <= value <= info.high:
            unit = f" {info.unit}" if info.unit else ""
            raise ValueError(
                f"{info.name} must lie in {info.low:g} to {info.high:g}{unit}, got {value:g}"
            )


def _walk_settings(settings: Any) -> Iterator[tuple[SettingInfo, float]]:
    for item in fields(settings):
        if "low" in item.metadata:
            default: Any = item.default
            info = SettingInfo(name=item.name, default=default, **item.metadata)
            yield info, getattr(settings, item.name)
        else:
            yield from _walk_settings(getattr(settings, item.name))
