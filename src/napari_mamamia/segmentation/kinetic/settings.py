"""Settings with default, range, unit, meaning and source in one place."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from napari_mamamia.core.provenance import Setting

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """A number that a user may change, with default and range in `unit`, effect and source."""

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
    """Return every setting of a settings class; names of nested settings are kept."""
    return tuple(info for info, _ in _walk_settings(settings))


def values_of(settings: "DataclassInstance") -> tuple[tuple[str, Setting], ...]:
    """Return (name, value) of every setting, for provenance."""
    return tuple((info.name, value) for info, value in _walk_settings(settings))


def checked(settings: "DataclassInstance") -> None:
    """Raise `ValueError` for the first setting that is not a number within its range."""
    for info, value in _walk_settings(settings):
        if not math.isfinite(value) or not info.low <= value <= info.high:
            unit = f" {info.unit}" if info.unit else ""
            raise ValueError(
                f"expected {info.name} from {info.low:g} to {info.high:g}{unit}, but got {value:g}"
            )


def _walk_settings(settings: Any) -> Iterator[tuple[SettingInfo, float]]:
    for item in fields(settings):
        if "low" in item.metadata:
            default: Any = item.default
            info = SettingInfo(name=item.name, default=default, **item.metadata)
            yield info, getattr(settings, item.name)
        else:
            yield from _walk_settings(getattr(settings, item.name))
