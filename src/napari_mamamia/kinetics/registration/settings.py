"""Settings of a registration of phases, and the names of its outcomes."""

from dataclasses import dataclass
from enum import StrEnum

from napari_mamamia.core.choices import Interpolation, TransformKind


class Verdict(StrEnum):
    """Outcome for a phase; only phases with a better fit are changed."""

    REFERENCE = "reference"
    BETTER = "better"
    UNCHANGED = "unchanged"
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class RegistrationSettings:
    """Settings of a registration; all other parameters are fixed in `kinetics.registration.itk`.

    Parameters
    ----------
    transform
        Rigid, or rigid and then B-spline.
    reference
        The phase onto which the others are registered; 1 is the first after contrast.
    mesh_mm
        Distance of the control points of the B-spline, mm, 10 or more. Source: 20 to 10 mm in
        Rueckert 1999 (IEEE Trans. Med. Imaging 18:712) for this very purpose; 40 mm is our choice,
        stiffer because free-form deformation shrinks what enhances (Rohlfing 2003, IEEE Trans.
        Med. Imaging 22:730).
    finest_mm
        Approximate voxel size in mm of the finest level on which phases are compared; the phases
        are resampled at their own resolution. Our choice.
    bins
        Bins along each axis of the joint histogram of Mattes' mutual information. Source: 32 in the
        examples of Insight Toolkit and elastix.
    samples
        Number of random voxels of the body that the metric samples, drawn again on each level. Our
        choice.
    seed
        Random seed of these samples.
    interpolation
        Interpolation of the written voxels. Linear interpolation smooths the noise of the moved
        phases but not of the others; cubic B-splines smooth less, and their overshoot is clipped to
        the range of the phase.

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
                f"samples, but got {self.reference}, {self.bins} and {self.samples}; change the "
                "settings"
            )
        if not (self.mesh_mm >= 10 and self.finest_mm > 0):
            raise ValueError(
                "expected control points at least 10 mm apart and voxels above 0 mm, but got "
                f"{self.mesh_mm:g} and {self.finest_mm:g} mm; change the settings"
            )

    @property
    def name(self) -> str:
        """The method as one line for the provenance."""
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
