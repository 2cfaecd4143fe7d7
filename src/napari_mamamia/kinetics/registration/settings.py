"""Settings for the registration of phases, and the names of its outcomes."""

from dataclasses import dataclass
from enum import StrEnum

from napari_mamamia.core.choices import Interpolation, TransformKind


class Verdict(StrEnum):
    """Outcome of the registration of a phase; only phases with a better fit are changed."""

    REFERENCE = "reference"
    BETTER = "better"
    UNCHANGED = "unchanged"
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class RegistrationSettings:
    """Settings of a registration; other parameters are constants in `kinetics.registration.itk`.

    Parameters
    ----------
    transform
        The kind of transform: rigid, or rigid followed by B-spline.
    reference
        The phase onto which all other phases are registered; phase 1 is the first after contrast.
    mesh_mm
        The distance of the B-spline's control points in mm, at least 10. Rueckert 1999 (IEEE Trans.
        Med. Imaging 18:712) used 20 to 10 mm for this purpose. Our choice of 40 mm is stiffer,
        because free-form deformation shrinks enhancing tissue (Rohlfing 2003, IEEE Trans. Med.
        Imaging 22:730).
    finest_mm
        The approximate voxel size in mm of the finest level on which phases are compared. Phases
        are resampled at their own resolution. Our choice.
    bins
        The number of bins along each axis of the joint histogram of Mattes' mutual information. The
        examples of Insight Toolkit and elastix use 32.
    samples
        The number of random voxels of the body that the metric samples, which are drawn again on
        each level. Our choice.
    seed
        The random seed of the samples.
    interpolation
        The interpolation of the written voxels. Linear interpolation smooths the noise of moved
        phases only. Cubic B-splines smooth less, and their overshoot is clipped to the range of the
        phase.

    Raises
    ------
    ValueError
        If a number is outside its range.
    """

    transform: TransformKind = TransformKind.BSPLINE
    reference: int = 1
    mesh_mm: float = 40.0
    finest_mm: float = 2.0
    bins: int = 32
    samples: int = 20_000
    seed: int = 7
    interpolation: Interpolation = Interpolation.BSPLINE

    def __post_init__(self) -> None:
        if self.reference < 0 or self.bins < 8 or self.samples < 1000:
            raise ValueError(
                "expected a reference phase of 0 or above, at least 8 bins and at least 1,000 "
                f"samples, but got phase {self.reference}, {self.bins} bins and {self.samples} "
                "samples; change the settings"
            )
        if not (self.mesh_mm >= 10 and self.finest_mm > 0):
            raise ValueError(
                "expected control points at least 10 mm apart and a voxel size above 0 mm, but "
                f"got {self.mesh_mm:g} mm and a voxel size of {self.finest_mm:g} mm; change the "
                "settings"
            )

    @property
    def name(self) -> str:
        """The method as one line of text for the provenance."""
        how = "rigid"
        if self.transform is TransformKind.BSPLINE:
            how = f"rigid, then B-spline of {self.mesh_mm:g} mm"
        reading = "linear"
        if self.interpolation is Interpolation.BSPLINE:
            reading = "cubic B-spline"
        return (
            f"{how}, to phase {self.reference}, Mattes mutual information ({self.bins} bins, "
            f"{self.samples} samples, seed {self.seed}), {reading} interpolation"
        )
