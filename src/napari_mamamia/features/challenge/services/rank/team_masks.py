"""Where the masks of a team lie: remembered, found beside those of another team, or not known."""

from collections.abc import Mapping
from pathlib import Path

from napari_mamamia.io.data_set.mask_files import list_masks


def find_team_folder(team: str, known: Mapping[str, Path], predictions: Path | None) -> Path | None:
    """Return the folder of a team's masks, None where it is not known.

    The one that the user named (`known`, by team); else the one beside another team's folder, where
    both are called like their teams; else that of a model of this name in `predictions`.
    """
    if team in known:
        return known[team]
    # A team's name comes from others: nothing but a plain name leads into a folder.
    if Path(team).name != team or team in ("", ".", ".."):
        return None
    beside = [folder.parent for other, folder in known.items() if folder.name == other]
    places = [*dict.fromkeys(beside), *([predictions] if predictions is not None else [])]
    return next((place / team for place in places if (place / team).is_dir()), None)


def find_team_mask(folder: Path, case_id: str) -> Path | None:
    """Return the mask of a case in a folder, None where there is none; letter case does not count.

    Raises
    ------
    FormatError
        If the folder is missing.
    """
    return list_masks(folder, [case_id]).masks.get(case_id)
