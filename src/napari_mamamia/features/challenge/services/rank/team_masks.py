"""Find the folder of a team's masks: set by the user, or next to another team's folder."""

from collections.abc import Mapping
from pathlib import Path

from napari_mamamia.io.data_set.mask_files import list_masks


def find_team_folder(team: str, known: Mapping[str, Path], predictions: Path | None) -> Path | None:
    """Return the folder of a team's masks, or None if it is not known.

    Three places are tried in this order: the folder that the user set (`known`); a folder next to
    another team's folder, if both folders have the names of their teams; and the folder of a model
    with this name in `predictions`.

    Parameters
    ----------
    team
        The team.
    known
        Folders set by the user, by team.
    predictions
        Folder with the predictions of the data set's models, or None.
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
    """Return a case's mask in a folder, ignoring letter case, or None if there is none.

    Raises
    ------
    FormatError
        If the folder is missing.
    """
    return list_masks(folder, [case_id]).masks.get(case_id)
