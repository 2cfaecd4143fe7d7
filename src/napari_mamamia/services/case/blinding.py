"""Check whether a mask was drawn in a blind reading, and whether a blind reading may show it."""

from napari_mamamia.core.blinding import (
    Blinding,
    BlindReading,
    Hidden,
    find_blind_reading,
    join_words,
)
from napari_mamamia.core.errors import HiddenError
from napari_mamamia.core.provenance import Provenance


def blind_reading(provenance: Provenance | None) -> BlindReading:
    """Return the blinding under which a mask was made, or no blinding if none is recorded."""
    return find_blind_reading(() if provenance is None else provenance.parameters)


def require_blind(blinding: Blinding, reading: BlindReading, reader: str, case_id: str) -> None:
    """Raise an error if a mask was drawn while items were visible that are now hidden.

    Raises
    ------
    HiddenError
        If the mask would reveal hidden items, or be mistaken for a blind reading.
    """
    seen = Blinding((blinding.hidden - reading.hidden.hidden) & _IN_A_MASK)
    if not seen.is_blind:
        return
    were = "was" if len(seen.names) == 1 else "were"
    when = f" ({reading.unblinded})" if reading.unblinded else ""
    raise HiddenError(
        f"expected a blinded mask of {case_id} by {reader}, but {join_words(seen.names)} {were} "
        f"visible when it was made{when}: read under a different name in a new window, or keep "
        "your masks in a different folder (page Cases, Change…); the mask is unchanged"
    )


_IN_A_MASK = frozenset({Hidden.REFERENCE, Hidden.MODEL, Hidden.OTHER_READERS})
"""Items that a mask may reveal; a mask reveals no numbers and no clinical data."""
