"""Kinetics: contrast-curve maps, curve classes and the choice of phases, for plain arrays.

`time_axis` places phases on a named time axis, `timing` chooses the early and the late phase, and
`arrival` and `bolus` detect contrast arrival. A map consists of a formula (`map_formulas`) and an
entry with its recipe, ranges, colours and texts (`map_kinds`); `map_blocks` computes it. `curves`
describes the curve of a region, `lesion` the kinetics of a lesion, `tumour_volume` the FTV as
defined by UCSF, `ultrafast` slope and arrival in closely spaced phases, and `background` the
contralateral breast.

The public functions ``mm.kinetics.maps(case)``, ``.ftv(case)`` and ``.curve(case)`` are in
`of_case`, which is imported when they are first used.
"""

from napari_mamamia.core.program.lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from napari_mamamia.kinetics.curves import ContrastCurve as ContrastCurve
    from napari_mamamia.kinetics.of_case import CaseMaps as CaseMaps
    from napari_mamamia.kinetics.of_case import curve as curve
    from napari_mamamia.kinetics.of_case import ftv as ftv
    from napari_mamamia.kinetics.of_case import maps as maps
    from napari_mamamia.kinetics.tumour_volume import FtvSettings as FtvSettings
    from napari_mamamia.kinetics.tumour_volume import (
        FunctionalTumourVolume as FunctionalTumourVolume,
    )

__all__ = [
    "CaseMaps",
    "ContrastCurve",
    "FtvSettings",
    "FunctionalTumourVolume",
    "curve",
    "ftv",
    "maps",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "curves": ("ContrastCurve",),
            "of_case": ("CaseMaps", "curve", "ftv", "maps"),
            "tumour_volume": ("FtvSettings", "FunctionalTumourVolume"),
        },
    )

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
