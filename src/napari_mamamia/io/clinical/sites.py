"""Where a case comes from, as far as a data set says: its table, or MAMA-MIA's prefix of the id."""

import re
from typing import Final

from napari_mamamia.core.cohort import CaseRecord

_PREFIX: Final = re.compile(r"(DUKE|ISPY1|ISPY2|NACT)_", re.IGNORECASE)
"""What MAMA-MIA's ids begin with: the collections that its cases are of. Source: L. Garrucho et
al., A large-scale multicenter breast cancer DCE-MRI benchmark dataset with expert segmentations,
Scientific Data 12, 453 (2025), table 1."""


def find_site(case_id: str, record: CaseRecord | None = None) -> str:
    """Return the site of a case: the table's `dataset`, else the id's prefix, else "".

    The institution that a DICOM header names is none: an import does not keep it, since it helps to
    find a person.

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
