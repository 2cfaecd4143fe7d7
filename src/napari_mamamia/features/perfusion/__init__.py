"""The perfusion feature: Ktrans, ve, kep and vp from ultrafast exams with a known T1."""

from typing import Final

from napari_mamamia.core.features import Command, Feature

FEATURE: Final = Feature(
    name="perfusion",
    summary="Ktrans, ve, kep and vp from ultrafast exams with a known T1",
    commands=(
        Command(
            "perfusion",
            "napari_mamamia.features.perfusion.cli:perfusion",
            "Fit Ktrans, ve, kep and vp to ultrafast exams with a known T1: maps, "
            "OUT/perfusion.csv.",
            "Masks and measurements",
        ),
    ),
    docs=("howto/kinetics.md", "methods/perfusion.md"),
)
