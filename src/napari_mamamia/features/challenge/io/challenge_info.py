"""Facts about a case that the challenge passes to submissions."""

import json
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json

_LESION: Final = "breast_coordinates"
_BOX: Final = ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")
_IMAGING: Final = (
    "bilateral",
    "dataset",
    "site",
    "scanner_manufacturer",
    "scanner_model",
    "field_strength",
    "echo_time",
    "repetition_time",
)
"""Keys of ``imaging_data`` that a submission gets. Source: the challenge's sample submission."""


@reads("the JSON of a patient", "correct, replace or remove the file")
def challenge_facts(path: Path, case_id: str) -> str:
    """Return the permitted facts of a patient info file as JSON text.

    The keys are patient_id, primary_lesion.breast_coordinates and eight of imaging_data. All other
    facts are left out, above all the patient's age, the response and the tumour's subtype. A key
    that the file lacks is left out too.

    Parameters
    ----------
    path
        The patient info file.
    case_id
        The case, for messages.

    Raises
    ------
    FormatError
        If the file cannot be read or is not a JSON object.
    """
    try:
        content = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            f"expected JSON in {path}, but it cannot be read ({error}): replace or remove the file"
        ) from error
    if not isinstance(content, dict):
        raise FormatError(
            f"expected a JSON object in {path}, got {type(content).__name__}: "
            "export the patient info again"
        )
    lesion, imaging = (
        _read_section(content, "primary_lesion"),
        _read_section(content, "imaging_data"),
    )
    facts: dict[str, object] = {"patient_id": case_id}
    if _LESION in lesion:
        box = _read_section(lesion, _LESION)
        facts["primary_lesion"] = {_LESION: {key: box[key] for key in _BOX if key in box}}
    facts["imaging_data"] = {key: imaging[key] for key in _IMAGING if key in imaging}
    return json.dumps(facts)


def _read_section(content: dict[str, object], key: str) -> dict[str, object]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}
