"""`Case` represents one exam of a data set; its files are read on first use."""

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_mamamia.core.case import Case as ReadCase
from napari_mamamia.core.case import LabelMap, Mask, Phase
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.mask_arrays import MaskLike
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.layouts.label_names import read_reference, read_tumour
from napari_mamamia.io.volumes.nifti_image import nifti_image
from napari_mamamia.library.arguments import PathLike
from napari_mamamia.library.progress import drive
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.open_case import load_case, require_few_values

if TYPE_CHECKING:
    from napari_mamamia.io.volumes.nifti_image import Nifti1Image


class Case:
    """One DCE-MRI exam of one patient: ``data_set["DUKE_001"]``.

    Files are read on first use and stay in memory as long as this object exists. Delete the object
    to free the memory; a loop over a data set does this for each case. Arrays have the shape ``(z,
    y, x)``, stacks of phases ``(phase, z, y, x)``. ``case.grid`` maps voxels to patient
    coordinates.
    """

    def __init__(self, context: CaseContext) -> None:
        self._context = context

    @classmethod
    def from_files(
        cls,
        phases: PathLike | Sequence[PathLike],
        mask: PathLike | None = None,
        times_s: Sequence[float] | None = None,
        *,
        case_id: str = "",
        workspace: PathLike | None = None,
    ) -> "Case":
        """Create a case from your own files; their headers are read immediately.

        Parameters
        ----------
        phases
            The phase files in order of time, or one 4-D file, as NIfTI, NRRD or MetaImage.
        mask
            The file of the expert mask, on the same grid as the phases.
        times_s
            Start of each phase, in seconds after the start of the first phase.
        case_id
            The case id; by default the name of the first file.
        workspace
            The folder for predictions and refined masks; by default a temporary folder.

        Returns
        -------
        Case
            The case, for `predict`, `grow` and ``kinetics``. `DataSet.from_cases` combines several
            cases.

        Raises
        ------
        ArgumentError
            If an argument has the wrong type, or the numbers of times and phases differ.
        FormatError
            If a file cannot be read.
        GridMismatchError
            If the grid of a phase or of the mask differs from the grid of the first phase.

        Examples
        --------
        >>> case = mm.Case.from_files(["p0.nii.gz", "p1.nii.gz"], times_s=[0, 90])  # doctest: +SKIP
        """
        from napari_mamamia.library.own_files import open_cases, open_files

        files = open_files(phases, mask, times_s, case_id)
        return cls(CaseContext(open_cases([files], workspace), files.case_id))

    @classmethod
    def from_arrays(
        cls,
        array: ArrayLike,
        *,
        affine: ArrayLike | None = None,
        spacing_mm: tuple[float, float, float] | None = None,
        times_s: Sequence[float] | None = None,
        mask: MaskLike | None = None,
        case_id: str = "case",
        workspace: PathLike | None = None,
    ) -> "Case":
        """Create a case from arrays, which are written to a temporary folder.

        Parameters
        ----------
        array
            The signal ``(phase, z, y, x)``, as integers or floating-point numbers.
        affine
            4x4 matrix that maps voxel ``(x, y, z)`` to RAS mm. Pass either this or `spacing_mm`.
        spacing_mm
            Distance between voxel centres along ``(z, y, x)`` in mm, for axes parallel to the
            patient's.
        times_s
            Start of each phase, in seconds after the start of the first phase.
        mask
            The expert mask ``(z, y, x)``.
        case_id
            The case id.
        workspace
            The folder for predictions and refined masks; by default a temporary folder.

        Returns
        -------
        Case
            The case, as from `from_files`.

        Raises
        ------
        ArgumentError
            If an argument has the wrong type or shape.
        GridMismatchError
            If the shapes of the mask and a phase differ.

        Examples
        --------
        >>> case = mm.Case.from_arrays(signal, spacing_mm=(2, 0.7, 0.7))  # doctest: +SKIP
        """
        from napari_mamamia.library.own_files import open_cases, open_files, save_arrays

        phases, mask_file = save_arrays(array, affine, spacing_mm, mask)
        files = open_files(phases, mask_file, times_s, case_id)
        return cls(CaseContext(open_cases([files], workspace), files.case_id))

    def __repr__(self) -> str:
        has = "with a reference" if self.files.reference is not None else "without a reference"
        if self.files.is_pending:
            return f"Case({self.case_id!r}, DICOM headers not read yet, {has})"
        wrong = f", cannot be opened: {'; '.join(self.problems)}" if self.problems else ""
        return f"Case({self.case_id!r}, {self.n_phases} phases, {has}{wrong})"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling: the paths of the files, not their content."""
        return {"_context": self._context}

    @property
    def context(self) -> CaseContext:
        """The internal object that describes the case to the services."""
        return self._context

    @property
    def case_id(self) -> str:
        """The case id, which is unique in the data set."""
        return self._context.case_id

    @property
    def files(self) -> CaseFiles:
        """The files of the case: ``phases``, ``reference``, ``automatic``, ``info``."""
        return self._context.files

    @property
    def record(self) -> CaseRecord | None:
        """The case's row in the clinical table (age, menopausal status, density, pCR), or None."""
        return self._context.record

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences that explain why the case cannot be opened; empty if it can be opened."""
        return tuple(self.files.problems)

    @property
    def n_phases(self) -> int:
        """The number of phases; for a DICOM study, only headers are read."""
        return len(self.files.phases)

    @cached_property
    def grid(self) -> Grid:
        """Shape, affine, spacing and orientation of all phases; only a file header is read.

        Raises
        ------
        CaseError, FormatError
            If the case has no phase, or the file of the first phase is damaged.
        """
        if not self.files.phases:
            raise CaseError(
                f"expected phases for {self.case_id}, but found none: add "
                f"{self.case_id}_0000.nii.gz"
            )
        return read_phase_header(self.files.phases[0]).grid

    @property
    def affine(self) -> NDArray[np.float64]:
        """The 4x4 affine stored in the file, which maps voxel ``(x, y, z)`` to RAS mm."""
        return self.grid.affine

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Distance between voxel centres along ``(z, y, x)`` in mm."""
        return self.grid.spacing_mm

    def read(self) -> ReadCase:
        """Read all phases into memory; later calls return the same object.

        Returns
        -------
        napari_mamamia.core.case.Case
            ``.signal`` has the shape ``(phase, z, y, x)``; ``.phases`` has one record for each
            phase.

        Raises
        ------
        CaseError
            If a phase is missing, or phases differ in shape or affine.
        FormatError
            If a file is damaged.
        """
        return self._loaded_case

    @cached_property
    def _loaded_case(self) -> ReadCase:
        return drive(partial(load_case, self.files, self.record))

    @property
    def signal(self) -> NDArray[Any]:
        """Read-only array ``(phase, z, y, x)`` in the files' data type; errors as in `read`."""
        view = self.read().signal.view()
        view.setflags(write=False)
        return view

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases, each with ``index``, ``time_s`` and ``sources``; errors as in `read`."""
        return self.read().phases

    @property
    def times_s(self) -> tuple[float | None, ...]:
        """Start of each phase in seconds after phase 0, or None if unknown; errors as in `read`."""
        return self.read().times_s

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about unusual properties of the case; errors as in `read`."""
        return self.read().warnings

    @property
    def reference(self) -> Mask | None:
        """The expert mask on the case's grid, or None if the data set has none for this case.

        Raises
        ------
        FormatError, GridMismatchError, CaseError
            If the file is damaged, is on a different grid, or contains an image instead of a mask.
        """
        path = self.files.reference
        return None if path is None else self._to_mask(read_reference(path, self.files), path)

    @property
    def automatic(self) -> Mask | None:
        """The automatic mask that comes with the data set, or None; errors as in `reference`."""
        return self._read_mask(self.files.automatic)

    @property
    def predictions(self) -> tuple[str, ...]:
        """Names of the models with a prediction for this case in the workspace."""
        masks = self._context.workspace.masks_of(self.case_id)
        return tuple(mask.name for mask in masks if mask.role == "prediction")

    @property
    def readers(self) -> tuple[str, ...]:
        """Names of the readers with a refined mask for this case in the workspace."""
        masks = self._context.workspace.masks_of(self.case_id)
        return tuple(mask.name for mask in masks if mask.role == "refined")

    def prediction(self, model: str = "kinetic") -> Mask:
        """Return the mask that a model predicted, from the data set's workspace.

        Parameters
        ----------
        model
            Name of the model, one of ``case.predictions``.

        Returns
        -------
        Mask
            The prediction on the case's grid.

        Raises
        ------
        CaseError
            If this model has no prediction; the message lists the models that have one.
        FormatError, GridMismatchError
            As in `reference`.
        """
        return self._own_mask("prediction", model, self.predictions)

    def refined(self, reader: str) -> Mask:
        """Return a reader's refined mask from the data set's workspace.

        Parameters
        ----------
        reader
            Name of the reader, one of ``case.readers``.

        Returns
        -------
        Mask
            The refined mask on the case's grid.

        Raises
        ------
        CaseError
            If this reader has no mask; the message lists the readers who have one.
        FormatError, GridMismatchError
            As in `reference`.
        """
        return self._own_mask("refined", reader, self.readers)

    def to_nibabel(self) -> "Nifti1Image":
        """Return all phases as a nibabel image.

        Returns
        -------
        nibabel.Nifti1Image
            The image with axes ``(x, y, z, phase)``; its voxels are a view of ``case.signal``.

        Raises
        ------
        CaseError, FormatError
            As in `read`.
        """
        return nifti_image(self.signal, self.grid)

    def to_simpleitk(self) -> "list[Any]":
        """Return each phase as a ``SimpleITK.Image`` in LPS mm, with unchanged voxel values.

        Returns
        -------
        list of SimpleITK.Image
            One 3-D image for each phase; ``GetArrayFromImage`` returns its array ``(z, y, x)``.

        Raises
        ------
        MissingExtraError
            If SimpleITK is not installed.
        ArgumentError
            If the axes of the grid are not perpendicular.
        CaseError, FormatError
            As in `read`.

        Examples
        --------
        >>> images = case.to_simpleitk()  # doctest: +SKIP
        """
        from napari_mamamia.library.other_libraries import make_sitk_image

        return [make_sitk_image(phase, self.grid) for phase in self.signal]

    def to_torchio(self) -> Any:
        """Return a ``torchio.Subject`` with ``dce`` (phases as channels), ``mask`` and ``times_s``.

        Tensors have the shape ``(channel, x, y, z)``; the affine maps voxels to RAS mm.

        Raises
        ------
        MissingExtraError
            If torchio is not installed.
        CaseError, FormatError
            As in `read`.

        Examples
        --------
        >>> subject = case.to_torchio()  # doctest: +SKIP
        """
        from napari_mamamia.library.other_libraries import make_torchio_subject

        return make_torchio_subject(self)

    def to_monai(self) -> dict[str, Any]:
        """Return a dict with "image", "label" (MetaTensors ``(channel, x, y, z)``) and "case_id".

        Raises
        ------
        MissingExtraError
            If monai is not installed.
        CaseError, FormatError
            As in `read`.

        Examples
        --------
        >>> item = case.to_monai()  # doctest: +SKIP
        """
        from napari_mamamia.library.other_libraries import make_monai_item

        return make_monai_item(self)

    def to_xarray(self) -> Any:
        """Return an ``xarray.DataArray`` ``(phase, z, y, x)`` with coordinates in mm and s.

        Raises
        ------
        MissingExtraError
            If xarray is not installed.
        CaseError, FormatError
            As in `read`.

        Examples
        --------
        >>> case.to_xarray().sel(z=12, method="nearest")  # doctest: +SKIP
        """
        from napari_mamamia.library.other_libraries import make_xarray

        return make_xarray(self)

    def _own_mask(self, role: str, name: str, known: tuple[str, ...]) -> Mask:
        for mask in self._context.workspace.masks_of(self.case_id):
            if (mask.role, mask.name) == (role, name):
                own_mask = self._read_mask(mask.path)
                if own_mask is not None:
                    return own_mask
        there = ", ".join(known) or "none"
        raise CaseError(
            f"expected the workspace to have a {role} mask of {self.case_id} by {name!r}, but "
            f"found {there}: choose one of these, or create the mask first"
        )

    def _read_mask(self, path: Path | None) -> Mask | None:
        if path is None:
            return None
        return self._to_mask(read_tumour(path), path)

    def _to_mask(self, labels: LabelMap, path: Path) -> Mask:
        labels = labels.on_grid(self.grid)
        require_same_grid(labels.grid, self.grid, str(path), f"case {self.case_id}")
        require_few_values(labels, self.case_id)
        return labels.mask()
