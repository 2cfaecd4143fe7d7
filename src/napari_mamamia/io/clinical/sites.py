"""Determine the site of a case from the clinical table or from the prefix of its id."""

import re
from typing import Final

from napari_mamamia.core.cohort import CaseRecord

_PREFIX: Final = re.compile(r"(DUKE|ISPY1|ISPY2|NACT)_", re.IGNORECASE)
"""Prefixes of the ids in MAMA-MIA, which name the collections of the cases."""


def find_site(case_id: str, record: CaseRecord | None = None) -> str:
    """Return a case's site from the `dataset` column or the id prefix; "" if unknown.

    The institution in a DICOM header is not used: an import discards it, because it could help to
    identify a person.

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
