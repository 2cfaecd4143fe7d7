"""The record of this package's page, which is imported when the window starts."""

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.features import Feature, Page

FEATURE = Feature(
    name="example",
    summary="the volume of each mask on screen",
    pages=(
        Page(
            "Volumes",
            "Check & export",
            widget="mamamia_example.page:VolumesPage",
            flow="mamamia_example.page:VolumesFlow",
            tip="Shows the volume of each mask on screen.",
            reveals=frozenset({Hidden.NUMBERS, Hidden.REFERENCE, Hidden.MODEL}),
        ),
    ),
)
