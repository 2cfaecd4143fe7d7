"""The site of a case: from the clinical table, or from MAMA-MIA's prefix of the id."""

import re
from typing import Final

from napari_mamamia.core.cohort import CaseRecord

_PREFIX: Final = re.compile(r"(DUKE|ISPY1|ISPY2|NACT)_", re.IGNORECASE)
"""Prefixes of MAMA-MIA's ids: the collections that its cases come from. Source: L. Garrucho et al.,
A
large-scale multicenter breast cancer DCE-MRI benchmark dataset with expert segmentations,
Scientific Data 12, 453 (2025), table 1.
"""


def find_site(case_id: str, record: CaseRecord | None = None) -> str:
    """Return the site of a case: the table's `dataset`, else the id's prefix, else "".

    The institution in a DICOM header is not used: an import does not keep it, since it could help
    to identify a person.

    Examples
    --------
    >>> find_site("duke_001"), find_site("ISPY2_10", CaseRecord("ISPY2_10", dataset="UCSF"))
    ('DUKE', 'UCSF')
    >>> find_site("A_1")
    ''
    """
    if record is not None and record.dataset:
        return record.dataset.strip()
    prefix = _PREFIX.match(case_id)
    return prefix[1].upper() if prefix else ""
