"""Tumour annotation and benchmark scoring on breast DCE-MRI.

``import napari_mamamia as mm`` gives scripts and notebooks access to data sets, predictions,
scores, kinetics, DICOM and export. Modules are imported on first use; Qt is never imported.

>>> import napari_mamamia as mm
>>> truth, guess = [[[0, 1, 1, 0]]], [[[0, 0, 1, 0]]]
>>> round(mm.metrics.dice(truth, guess), 3)
0.667

- `open_data_set` opens a folder of cases as a table; each case has its phases and masks.
- `predict` segments the tumour; `grow` segments it from a click, a box or an outline.
- `score` compares masks with references; `metrics` contains the single metrics.
- `score_detection` scores detected lesions and false positive boxes.
- `kinetics` measures contrast curves, maps and FTV of a case; `measure_kinetics` measures a data
  set.
- `open_study` opens a review study: its state, the agreement of its readers, accepted masks.
- `import_dicom` makes cases from DICOM, `export` writes masks in exchange formats, `verify` checks
  them.
- `make_phantoms` makes a synthetic data set for trying these functions.

Errors are `MamamiaError`: they say what was expected, what was found, and how to fix the problem.
"""

from napari_mamamia.core.program.lazy import lazy_names
from napari_mamamia.core.version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from napari_mamamia import kinetics as kinetics
    from napari_mamamia import metrics as metrics
    from napari_mamamia.core.case import Mask as Mask
    from napari_mamamia.core.errors import ArgumentError as ArgumentError
    from napari_mamamia.core.errors import CaseError as CaseError
    from napari_mamamia.core.errors import FormatError as FormatError
    from napari_mamamia.core.errors import GridMismatchError as GridMismatchError
    from napari_mamamia.core.errors import MamamiaError as MamamiaError
    from napari_mamamia.core.errors import MissingExtraError as MissingExtraError
    from napari_mamamia.core.errors import ModelError as ModelError
    from napari_mamamia.core.errors import SaveConflictError as SaveConflictError
    from napari_mamamia.core.errors import SaveError as SaveError
    from napari_mamamia.core.grid import Grid as Grid
    from napari_mamamia.features.classifiers.library import Detections as Detections
    from napari_mamamia.features.classifiers.library import score_detection as score_detection
    from napari_mamamia.features.classifiers.scoring.detection.focal import FocalLoss as FocalLoss
    from napari_mamamia.features.classifiers.scoring.detection.focal import (
        risk_adjusted_focal as risk_adjusted_focal,
    )
    from napari_mamamia.features.prompt.library import Prompted as Prompted
    from napari_mamamia.features.prompt.library import prompt as prompt
    from napari_mamamia.features.prompt.segmentation.prompts import Prompt as Prompt
    from napari_mamamia.features.review.library import ReviewStudy as ReviewStudy
    from napari_mamamia.features.review.library import open_study as open_study
    from napari_mamamia.library.case import Case as Case
    from napari_mamamia.library.data_set import DataSet as DataSet
    from napari_mamamia.library.data_set import open_data_set as open_data_set
    from napari_mamamia.library.dicom import Imported as Imported
    from napari_mamamia.library.dicom import import_dicom as import_dicom
    from napari_mamamia.library.dicom import inspect_dicom as inspect_dicom
    from napari_mamamia.library.export import Exported as Exported
    from napari_mamamia.library.export import export as export
    from napari_mamamia.library.export import verify as verify
    from napari_mamamia.library.grow import Growth as Growth
    from napari_mamamia.library.grow import grow as grow
    from napari_mamamia.library.kinetics import Measurements as Measurements
    from napari_mamamia.library.kinetics import measure_kinetics as measure_kinetics
    from napari_mamamia.library.masks import from_nibabel as from_nibabel
    from napari_mamamia.library.masks import read_mask as read_mask
    from napari_mamamia.library.masks import to_nibabel as to_nibabel
    from napari_mamamia.library.masks import write_mask as write_mask
    from napari_mamamia.library.phantoms import make_phantom_study as make_phantom_study
    from napari_mamamia.library.phantoms import make_phantoms as make_phantoms
    from napari_mamamia.library.predict import Predictions as Predictions
    from napari_mamamia.library.predict import predict as predict
    from napari_mamamia.library.score import score as score
    from napari_mamamia.library.score import score_table as score_table
    from napari_mamamia.library.scores import Comparison as Comparison
    from napari_mamamia.library.scores import Scores as Scores
    from napari_mamamia.segmentation.model.segmenter import Prediction as Prediction
    from napari_mamamia.smartpaint.grow.start import Outline as Outline
else:
    _find = lazy_names(
        __name__,
        {
            "kinetics": (),
            "metrics": (),
            "core.case": ("Mask",),
            "core.errors": (
                "ArgumentError",
                "CaseError",
                "FormatError",
                "GridMismatchError",
                "MamamiaError",
                "MissingExtraError",
                "ModelError",
                "SaveConflictError",
                "SaveError",
            ),
            "core.grid": ("Grid",),
            "library.case": ("Case",),
            "library.data_set": ("DataSet", "open_data_set"),
            "library.masks": ("from_nibabel", "read_mask", "to_nibabel", "write_mask"),
            "library.dicom": (
                "Imported",
                "import_dicom",
                "inspect_dicom",
            ),
            "library.export": (
                "Exported",
                "export",
                "verify",
            ),
            "library.grow": (
                "Growth",
                "grow",
            ),
            "library.kinetics": (
                "Measurements",
                "measure_kinetics",
            ),
            "library.phantoms": (
                "make_phantom_study",
                "make_phantoms",
            ),
            "library.predict": (
                "Predictions",
                "predict",
            ),
            "segmentation.model.segmenter": ("Prediction",),
            "smartpaint.grow.start": ("Outline",),
            "library.score": ("score", "score_table"),
            "library.scores": ("Comparison", "Scores"),
        },
    )

    def __getattr__(name: str) -> object:
        """Return a public name, imported at its first use."""
        if name in _NAMES or (name.startswith("_") and name != "__all__"):
            return _find(name)
        from napari_mamamia.core.features import list_library_names, load_attribute

        if name == "__all__":
            return sorted({*_NAMES, *list_library_names()})
        attribute = list_library_names().get(name)
        return _find(name) if attribute is None else load_attribute(attribute)

    def __dir__() -> list[str]:
        return sorted(__getattr__("__all__"))


_NAMES = (
    "ArgumentError",
    "Case",
    "CaseError",
    "Comparison",
    "DataSet",
    "Exported",
    "FormatError",
    "Grid",
    "GridMismatchError",
    "Growth",
    "Imported",
    "MamamiaError",
    "Mask",
    "Measurements",
    "MissingExtraError",
    "ModelError",
    "Outline",
    "Prediction",
    "Predictions",
    "SaveConflictError",
    "SaveError",
    "Scores",
    "__version__",
    "export",
    "from_nibabel",
    "grow",
    "import_dicom",
    "inspect_dicom",
    "kinetics",
    "make_phantom_study",
    "make_phantoms",
    "measure_kinetics",
    "metrics",
    "open_data_set",
    "predict",
    "read_mask",
    "score",
    "score_table",
    "to_nibabel",
    "verify",
    "write_mask",
)
"""Public names of the core; each feature adds its own names."""
