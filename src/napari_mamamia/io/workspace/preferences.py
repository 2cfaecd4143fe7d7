"""Settings stored between sessions, such as the reader's name and the workspaces."""

import hashlib
import json
import logging
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError, SaveError
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.one_writer import wait_for_turn
from napari_mamamia.io.files.own_paths import can_write_in
from napari_mamamia.io.files.record_codec import Layout, RecordCodec
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.io.files.user_folders import absolute, documents_folder, preferences_path
from napari_mamamia.io.layouts.find import recognise
from napari_mamamia.io.volumes.formats import file_stem

_log = logging.getLogger(__name__)

_MOST_RECENT: Final = 10
_MOST_TEAMS: Final = 200
_KIND_OF: Final = {
    **dict.fromkeys(("images", "segmentations", "patient_info_files"), LayoutKind.MAMA_MIA),
    **dict.fromkeys(("imagesTr", "imagesTs", "labelsTr", "labelsTs"), LayoutKind.PATTERN),
}
"""Kind of layout by the name of a folder that is typical of it."""


@dataclass(frozen=True, slots=True)
class Preferences:
    """The stored settings of the user.

    `reader` is None until the user enters a name. `workspaces` maps the root of a data set to its
    chosen workspace. `recent` lists data sets, with the latest first. `keys` maps window actions to
    the user's shortcuts. `view` maps settings of the image area to their last values. `team_masks`
    lists a ranking folder, a team and the folder of that team's masks, with the latest first.
    `features` maps settings of features to their values. `problem` explains why defaults are used
    although a file exists, or is "".
    """

    reader: str | None = None
    workspaces: tuple[tuple[Path, Path], ...] = ()
    recent: tuple[Path, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    view: tuple[tuple[str, str], ...] = ()
    team_masks: tuple[tuple[Path, str, Path], ...] = ()
    features: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    loaded: "Preferences | None" = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Choice:
    data_set: Path
    workspace: Path


@dataclass(frozen=True, slots=True)
class _TeamMasks:
    ranking: Path
    team: str
    masks: Path


@dataclass(frozen=True, slots=True)
class _Stored:
    """Content of the preferences file: the stored part of `Preferences`."""

    reader: str | None = None
    workspaces: tuple[_Choice, ...] = ()
    recent: tuple[Path, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    view: tuple[tuple[str, str], ...] = ()
    team_masks: tuple[_TeamMasks, ...] = ()
    features: tuple[tuple[str, str], ...] = ()


_CODEC: Final = RecordCodec(
    _Stored,
    "the file is renamed; enter the settings again",
    [Layout(_Stored, pairs=frozenset({"features", "keys", "view"}))],
    passes_unknown=True,
)


def load_preferences() -> Preferences:
    """Return the stored preferences, or the defaults if nothing is stored.

    A damaged file also gives defaults, and is renamed to ``preferences.json.bad``. A file that is
    temporarily unreadable gives defaults with a `problem`, which are never saved.
    """
    path = preferences_path()
    try:
        stored = _CODEC.record(read_json(path), path)
        pairs = tuple((workspace.data_set, workspace.workspace) for workspace in stored.workspaces)
        teams = tuple(
            (team_mask.ranking, team_mask.team, team_mask.masks) for team_mask in stored.team_masks
        )
        saved = Preferences(
            stored.reader, pairs, stored.recent, stored.keys, stored.view, teams, stored.features
        )
        return replace(saved, loaded=saved)
    except FileNotFoundError:
        return Preferences(loaded=Preferences())
    except (
        OSError
    ) as error:  # The file may be intact; a network share that does not respond proves nothing.
        return Preferences(problem=f"{path} could not be read ({error.strerror or error})")
    except (ValueError, TypeError, RecursionError) as error:
        _log.warning("preferences could not be read and were renamed: %s", error)
        _set_aside(path)
        return Preferences(loaded=Preferences())


def save_preferences(preferences: Preferences) -> None:
    """Save the changes to `preferences` since loading, or all settings if never loaded.

    Changes that another window or program has saved in the meantime are kept; if both changed a
    setting, the value in `preferences` is stored.

    Raises
    ------
    SaveError
        If the system cannot write the file, or if the stored preferences could not be read when
        `preferences` were loaded.
    """
    if preferences.problem:
        raise SaveError(
            f"the preferences cannot be saved: {preferences.problem}; nothing was written, so no "
            "setting is lost; check that the file is readable, and try again"
        )
    path = preferences_path()
    _require_folder(path.parent)
    with wait_for_turn(path):
        _write_preferences(_join_changes(preferences, load_preferences()), path)


def _require_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SaveError(
            f"cannot create the preferences folder {folder}: {error.strerror or error}; nothing "
            "was written; check that the parent folder is writable"
        ) from error


def _join_changes(own: Preferences, there: Preferences) -> Preferences:
    before = own.loaded
    if before is None or there.problem:
        return own
    changed = {
        name: getattr(own, name)
        for name in ("reader", "workspaces", "recent", "keys", "team_masks")
        if getattr(own, name) != getattr(before, name)
    }
    view = dict(there.view) | dict(set(own.view) - set(before.view))
    features = dict(there.features) | dict(set(own.features) - set(before.features))
    return replace(there, view=tuple(view.items()), features=tuple(features.items()), **changed)


def _write_preferences(preferences: Preferences, path: Path) -> None:
    stored = _Stored(
        preferences.reader,
        tuple(_Choice(*pair) for pair in preferences.workspaces),
        preferences.recent,
        preferences.keys,
        preferences.view,
        tuple(_TeamMasks(*team_mask) for team_mask in preferences.team_masks),
        preferences.features,
    )
    text = json.dumps(_CODEC.plain(stored), indent=2, ensure_ascii=False) + "\n"
    write_text_atomically(path, text, overwrite=True)


def remember_workspace(preferences: Preferences, data_set: Path, workspace: Path) -> Preferences:
    """Return preferences in which `workspace` is the workspace of `data_set`.

    Raises
    ------
    CaseError
        If the workspace would be inside the data set, which is never changed.
    """
    data_set, workspace = absolute(data_set), absolute(workspace)
    if workspace == data_set or data_set in workspace.parents:
        raise CaseError(
            f"expected a workspace outside the data set {data_set}, but {workspace} is inside it: "
            "choose another folder, such as one next to the data set"
        )
    others = tuple(pair for pair in preferences.workspaces if pair[0] != data_set)
    return replace(preferences, workspaces=((data_set, workspace), *others))


def remember_recent(preferences: Preferences, data_set: Path) -> Preferences:
    """Return preferences with `data_set` first in the list of at most ten recent data sets."""
    data_set = absolute(data_set)
    others = (path for path in preferences.recent if path != data_set)
    return replace(preferences, recent=(data_set, *others)[:_MOST_RECENT])


def remember_team_masks(
    preferences: Preferences, ranking: Path, team: str, masks: Path
) -> Preferences:
    """Return preferences with the folder of a team's masks in a ranking; at most 200 are kept."""
    ranking, masks = absolute(ranking), absolute(masks)
    others = (team_mask for team_mask in preferences.team_masks if team_mask[:2] != (ranking, team))
    newest = ((ranking, team, masks), *others)[:_MOST_TEAMS]
    return replace(preferences, team_masks=newest)


def team_masks_of(preferences: Preferences, ranking: Path) -> dict[str, Path]:
    """Return the mask folders chosen for the teams in a ranking, by team."""
    here = absolute(ranking)
    return {team: masks for folder, team, masks in preferences.team_masks if folder == here}


def workspace_for(data_set: Path, preferences: Preferences) -> Path:
    """Return the workspace folder for a data set (root folder or file) without creating it.

    The folder is the one that was chosen before, or otherwise ``<name>-workspace`` next to the data
    set. If that folder is not writable, it is ``napari-mamamia/<name>-<code>-workspace`` in the
    user's documents; the code distinguishes data sets with the same name. A file or folder inside a
    data set has the workspace of that data set.
    """
    data_set = absolute(data_set)
    chosen = dict(preferences.workspaces).get(data_set)
    if chosen is not None:
        return chosen
    beside = workspace_beside(data_set)
    if can_write_in(beside if beside.is_dir() else beside.parent):
        return beside
    code = hashlib.sha256(os.fsencode(data_set)).hexdigest()[:6]
    return documents_folder() / f"{_find_stem(data_set)}-{code}-workspace"


def workspace_beside(data_set: Path) -> Path:
    """Return ``<name>-workspace`` next to a data set, whether or not it exists."""
    data_set = absolute(data_set)
    return outermost(data_set).parent / f"{_find_stem(data_set)}-workspace"


def _find_stem(data_set: Path) -> str:
    return file_stem(data_set.name) or data_set.name or "data"


def outermost(path: Path) -> Path:
    """Return the outermost data set that contains `path`, or `path` itself."""
    for parent in list(path.parents)[:4]:
        kind = _KIND_OF.get(path.relative_to(parent).parts[0])
        if kind is not None and recognise(parent) is kind:
            return parent
    return path


def _set_aside(path: Path) -> None:
    try:
        path.replace(path.with_name(f"{path.name}.bad"))
    except OSError as error:
        _log.warning("damaged preferences could not be renamed: %s", error)
