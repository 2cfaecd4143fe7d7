"""Find the folder of a team's masks: set by the user, or next to another team's folder."""

from collections.abc import Mapping
from pathlib import Path

from napari_mamamia.io.data_set.mask_files import list_masks


def find_team_folder(team: str, known: Mapping[str, Path], predictions: Path | None) -> Path | None:
    """Return the folder of a team's masks, None if it is not known.

    The first of these is returned: the folder that the user set (`known`); a folder next to another
    team's folder, if both folders are named like their teams; the folder of a model with this name
    in `predictions`.

    Parameters
    ----------
    team
        The team.
    known
        Folders set by the user, by team.
    predictions
        Folder of the models of the data set; None without one.
    """
    if team in known:
        return known[team]
    # Team names are untrusted; only a plain name may be used as a folder name.
    if Path(team).name != team or team in ("", ".", ".."):
        return None
    beside = [folder.parent for other, folder in known.items() if folder.name == other]
    places = [*dict.fromkeys(beside), *([predictions] if predictions is not None else [])]
    return next((parent / team for parent in places if (parent / team).is_dir()), None)


def find_team_mask(folder: Path, case_id: str) -> Path | None:
    """Return the mask of a case in a folder, None if there is none; letter case is ignored.

    Raises
    ------
    FormatError
        If the folder is missing.
    """
    return list_masks(folder, [case_id]).masks.get(case_id)
