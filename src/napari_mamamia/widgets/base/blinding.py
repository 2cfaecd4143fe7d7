"""Rules of blinding: which hidden data each layer, service and page would reveal.

A layer with a hidden role is never created, a service that would read or compute hidden data raises
an error, and a blocked page shows the reason instead of its content.
`tests/widgets/test_blinding.py` checks that every role, service and page has an entry here.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.core.blinding import Blinding, Hidden
from napari_mamamia.core.errors import HiddenError
from napari_mamamia.core.features import list_features
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.pages import list_pages
from napari_mamamia.widgets.base.service_record import ServiceSet

NOTHING_ELSE: Final = tr(
    "Blinded reading: this window shows only the case and your mask. Other layers were removed. "
    "Open cases on the Cases page."
)
_REFERENCE: Final = frozenset({Hidden.REFERENCE})
_MODEL: Final = frozenset({Hidden.MODEL})
_NUMBERS: Final = frozenset({Hidden.NUMBERS})
_COMPARISON: Final = frozenset({Hidden.REFERENCE, Hidden.MODEL, Hidden.OTHER_READERS})

Shown = Mapping[Any, frozenset[Hidden]]
"""The data that each role, service or page reveals; access is blocked if any of them is hidden."""

ROLES: Final[Shown] = MappingProxyType(
    {
        Role.PHASE: frozenset(),
        Role.SUBTRACTION: frozenset(),
        Role.MAP: frozenset(),
        Role.PROJECTION: frozenset(),
        Role.MARKS: frozenset(),
        Role.REFINED: frozenset(),
        Role.REFERENCE: _REFERENCE,
        Role.AGREEMENT: _REFERENCE,
        Role.PREDICTION: _MODEL,
        Role.READING_A: frozenset({Hidden.OTHER_READERS}),
        Role.READING_B: frozenset({Hidden.OTHER_READERS}),
        Role.DOUBT: _MODEL,
    }
)

PAGES: Final[Shown] = MappingProxyType({page.name: page.reveals for page in list_pages()})

SERVICES: Final[Shown] = MappingProxyType(
    {
        "predict_case": _MODEL,
        "predict_data_set": _MODEL,
        "choose_candidate": _MODEL,
        "estimate_case": _MODEL,
        "predict.kept": _MODEL,
        "predict.keep": _MODEL,
        "predict.uncertainty_of": _MODEL,
        "predict.input_pictures": frozenset(),
        "score_shown": _REFERENCE | _NUMBERS,
        "compare_masks": _REFERENCE,
        "review_masks": _COMPARISON,
        "find_pairs": _COMPARISON,
        "score_folders": _COMPARISON,
        "score_models": _COMPARISON,
        "case_table": _COMPARISON,
        "look_for_contrast": _COMPARISON,
        "with_failures": _COMPARISON,
        "with_tags": _COMPARISON,
        "saved_figures": _COMPARISON,
        "look_at_clinical": frozenset({Hidden.CLINICAL}),
        "export_bundle": _COMPARISON,
        "report_anew": _COMPARISON | _NUMBERS,
        "measure_mask": _NUMBERS,
        "kinetics.mask_numbers": _NUMBERS,
        "kinetics.live_ftv": _NUMBERS,
        "kinetics.ftv_under_seg": _REFERENCE,
        "imports.look": _REFERENCE,
        "imports.judge": _REFERENCE,
        "imports.preview": _REFERENCE,
        "imports.part_picture": _REFERENCE,
        "imports.check": _REFERENCE,
        "imports.run": _REFERENCE,
        **{name: parts for feature in list_features() for name, parts in feature.reveals.items()},
    }
)
"""Services that reveal data; other services read only images, the reader's mask and settings.

Services that open a data set, a case or its masks follow the blinding of their workspace instead.
"""


def why_hidden(blinding: Blinding, parts: frozenset[Hidden]) -> str:
    """Return why access to `parts` is blocked, or "" if it is allowed."""
    hit = Blinding(blinding.hidden & parts)
    return tr("{words} in this reading.", words=hit.text) if hit.is_blind else ""


def guard_services(service_set: Any, blinding: Callable[[], Blinding], prefix: str = "") -> Any:
    """Return a service set whose services raise an error if they would reveal hidden data."""
    guarded: dict[str, Any] = {}
    for name in dir(service_set):
        service = getattr(service_set, name)
        if isinstance(service, ServiceSet):
            guarded[name] = guard_services(service, blinding, f"{name}.")
        elif SERVICES.get(prefix + name):
            guarded[name] = _guard_service(service, blinding, SERVICES[prefix + name])
    return service_set.replacing(**guarded)


def _guard_service(
    service: Callable[..., Any], blinding: Callable[[], Blinding], parts: frozenset[Hidden]
) -> Callable[..., Any]:
    @wraps(service)
    def ask(*arguments: Any, **settings: Any) -> Any:
        why = why_hidden(blinding(), parts)
        if why:
            raise HiddenError(why)
        return service(*arguments, **settings)

    return ask
