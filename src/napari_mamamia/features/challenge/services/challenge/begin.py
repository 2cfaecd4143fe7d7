"""Create a challenge: freeze its cases with their hashes, and all scoring settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfile, copyfileobj
from typing import Final

import numpy as np

from napari_mamamia.core.choices import Task, UnusableRule
from napari_mamamia.core.errors import CaseError, FormatError, Remedy, SaveConflictError
from napari_mamamia.core.names import count_of, name_some
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.challenge.io.challenge_file import (
    CHALLENGE_FILE,
    SUBMISSIONS,
    Challenge,
    ChallengeLimits,
    ChallengePlaces,
    FrozenCase,
    FrozenFile,
    OpenChallenge,
    read_challenge,
    relative_place,
    write_challenge,
)
from napari_mamamia.features.challenge.io.definition import (
    MAMA_MIA_TASK1,
    MAMA_MIA_TASK2,
    OF_PROFILE,
    AnswerKind,
    ChallengeDefinition,
    RankBy,
    definition_named,
    freeze_definition,
)
from napari_mamamia.features.challenge.services.challenge.answers import (
    describe_columns,
    find_sites,
    freeze_code,
    has_mask_measures,
    list_truth,
    load_models,
    require_measures,
)
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.clinical.columns import BY_NAME, COLUMNS_FILE, ColumnChoice, columns_for
from napari_mamamia.io.clinical.columns import write_columns as write_column_file
from napari_mamamia.io.data_set.mask_files import find_masks, no_mask_error
from napari_mamamia.io.data_set.volumes import files_of_volume, read_labels
from napari_mamamia.io.files.checksums import sha256_of, sha256_of_large
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.own_paths import sweep_below
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.files.sources import DataSet
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.scoring.case.profiles import CLINICAL, Profile
from napari_mamamia.scoring.cohort.policy import require_rule
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED
from napari_mamamia.services.score.clinical_table import FAIRNESS, RESPONSE, lacking, needed_table

N_EXPRESS: Final = 3
_CLINICAL: Final = "clinical"
_MODELS: Final = "models"
_TASKS: Final = {AnswerKind.MASKS: Task.SEGMENTATION, AnswerKind.RESPONSES: Task.CLASSIFICATION}


@dataclass(frozen=True, slots=True)
class ChallengeSettings:
    """Settings of a new challenge.

    Parameters
    ----------
    name
        Title of the challenge; if "", the folder's name.
    task
        What teams submit.
    reference
        Folder of the reference masks; if None, the references in `images`.
    images
        The data set on which programs are run; None if teams submit only masks and tables.
    clinical, columns
        The clinical table, and a file that names its columns.
    case_ids
        The ids of the cases. If (), all cases with a reference or, if only responses are submitted,
        all cases with a response in the table.
    profile, rule
        The profile that defines how every number is computed, and the rule for unusable cases (if
        None, the profile's rule).
    seed, n_resamples
        Seed and number of resamples of every bootstrap.
    express
        Express-lane cases, which are run first as a trial; if (), the cases with the smallest,
        median and largest tumour.
    takes_tables, ladder, limits, gate
        As in `Challenge`.
    definition
        The definition of the challenge; if None, the MAMA-MIA definitions of `task`.
    models
        The models that measures use, by role, as a kind followed by ``:`` and a file or number.
    """

    name: str = ""
    task: Task | None = Task.SEGMENTATION
    reference: Path | None = None
    images: Path | None = None
    clinical: Path | None = None
    columns: ColumnChoice = BY_NAME
    case_ids: tuple[str, ...] = ()
    profile: Profile = CLINICAL
    rule: UnusableRule | None = None
    seed: int = SEED
    n_resamples: int = N_RESAMPLES
    express: tuple[str, ...] = ()
    takes_tables: bool = False
    ladder: bool = False
    limits: ChallengeLimits = field(default_factory=ChallengeLimits)
    gate: float | None = None
    definition: ChallengeDefinition | None = None
    models: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.definition is not None:
            task = _TASKS.get(self.definition.answer.kind)
            object.__setattr__(self, "task", task)

    @property
    def wants_masks(self) -> bool:
        """Return whether teams submit masks."""
        return self.task is not None and self.task.wants_masks

    @property
    def wants_responses(self) -> bool:
        """Return whether teams submit responses."""
        return self.task is not None and self.task.wants_responses


@dataclass(frozen=True, slots=True)
class BegunChallenge:
    """A new challenge, and the warnings about its data."""

    opened: OpenChallenge
    notes: tuple[str, ...]


def begin_challenge(folder: Path, settings: ChallengeSettings) -> BegunChallenge:
    """Create a challenge in `folder`: ``challenge.json``, ``places.json``, ``submissions``.

    Each reference is read once. The clinical table is copied to ``clinical``.

    Parameters
    ----------
    folder
        A new or empty folder.
    settings
        Settings of the challenge.

    Raises
    ------
    CaseError
        If a case does not exist, or no input defines the list of cases.
    FormatError
        If a reference or the clinical table cannot be read.
    SaveConflictError
        If `folder` already contains a challenge.
    SaveError
        If the system does not allow writing.
    """
    sweep_below(folder)
    if (folder / CHALLENGE_FILE).exists():
        raise SaveConflictError(
            f"{folder} already contains a challenge, which cannot be changed: choose a new folder"
        )
    if settings.definition is not None and settings.definition.has_own_files:
        return _begin_defined(folder, settings, settings.definition)
    definitions = choose_definitions(settings)
    _require_enough(settings)
    data_set = None if settings.images is None else find_data_set(settings.images)
    references = _find_references(settings, data_set)
    case_ids = _choose_cases(settings, references)
    measured = settings.definition if has_mask_measures(definitions[0]) else None
    if measured is not None and not references:
        raise CaseError(
            "expected reference masks, because the definition has measures of masks that teams "
            "cannot compute themselves, but found none",
            remedies=(Remedy("reference", ("DIR",)),),
        )
    volumes, notes = _measure_references(case_ids, references, measured)
    clinical, columns = _copy_clinical(folder, settings, case_ids)
    cases = []
    for number, case_id in enumerate(case_ids):
        report_progress(number, len(case_ids), f"Checksums of {case_id}")
        cases.append(_freeze_case(case_id, references.get(case_key(case_id)), data_set))
    challenge = Challenge(
        name=settings.name or _find_title(settings.definition) or folder.resolve().name,
        task=settings.task,
        profile=settings.profile.name,
        profile_version=settings.profile.version,
        rule=settings.rule.value if settings.rule else "",
        seed=settings.seed,
        n_resamples=settings.n_resamples,
        metrics=tuple(
            measure.id if measured else measure.of
            for definition in definitions
            for measure in definition.measures
            if not measure.of.startswith(OF_PROFILE)
        ),
        cases=tuple(cases),
        express=_choose_express(settings, case_ids, volumes),
        clinical=clinical,
        columns=columns,
        takes_tables=settings.takes_tables or not references,
        ladder=settings.ladder,
        limits=settings.limits,
        gate=settings.gate,
        definitions=_freeze_definitions(folder, definitions),
        code=freeze_code(definitions),
        software=software_version(),
        created=now_utc(),
    )
    reference = settings.reference or next((path.parent for _, path in references.values()), None)
    places = ChallengePlaces(
        relative_place(reference, folder), relative_place(settings.images, folder)
    )
    (folder / SUBMISSIONS).mkdir(parents=True, exist_ok=True)
    write_challenge(folder, challenge, places)
    report_progress(1, 1, "Finished")
    opened = read_challenge(folder)
    return BegunChallenge(opened, (*notes, *_note_columns(opened, definitions[0])))


def _note_columns(opened: OpenChallenge, definition: ChallengeDefinition) -> tuple[str, ...]:
    if opened.clinical is None or definition.is_by_profile:
        return ()
    choice = columns_for(opened.clinical, BY_NAME)
    return describe_columns(definition, read_clinical(opened.clinical, choice))


def choose_definitions(settings: ChallengeSettings) -> tuple[ChallengeDefinition, ...]:
    """Return the chosen definition, or the MAMA-MIA definition of each task."""
    if settings.definition is not None:
        _refuse_ladder(settings.definition, settings)
        require_measures(settings.definition)
        return (settings.definition,)
    names = [MAMA_MIA_TASK1] * settings.wants_masks + [MAMA_MIA_TASK2] * settings.wants_responses
    return tuple(definition_named(name) for name in names)


def _find_title(definition: ChallengeDefinition | None) -> str:
    return "" if definition is None else definition.title or definition.name


def _freeze_definitions(
    folder: Path, definitions: Sequence[ChallengeDefinition]
) -> tuple[FrozenFile, ...]:
    paths = [freeze_definition(definition, folder) for definition in definitions]
    return tuple(FrozenFile(path.relative_to(folder).as_posix(), sha256_of(path)) for path in paths)


def _begin_defined(
    folder: Path, settings: ChallengeSettings, definition: ChallengeDefinition
) -> BegunChallenge:
    """Create a challenge whose files are described by a definition."""
    _refuse_ladder(definition, settings)
    notes = require_measures(definition)
    honest = (definition_named(definition.honest),) if definition.honest else ()
    root = settings.reference
    if root is None:
        raise CaseError(
            "expected the folder with the truth of the challenge, but found none",
            remedies=(Remedy("reference", ("DIR",)),),
        )
    case_ids, names = list_truth(definition, root)
    if settings.case_ids:
        spelled = {case_key(case_id): case_id for case_id in case_ids}
        unknown = [one for one in settings.case_ids if case_key(one) not in spelled]
        if unknown:
            raise CaseError(
                "expected every listed case to have a truth, but found none for "
                f"{name_some(unknown)}: add the truth, or remove the case from the list"
            )
        case_ids = tuple(spelled[case_key(one)] for one in settings.case_ids)
    clinical, columns = _copy_clinical(folder, settings, case_ids)
    models, model_files = {}, []
    for role, text in settings.models.items():
        kind, _, argument = text.partition(":")
        source = Path(argument)
        models[role] = text
        if argument and source.is_file():
            target = folder / _MODELS / f"{role}{source.suffix}"
            with saving(target) as temporary:
                copyfile(source, temporary)
            name = target.relative_to(folder).as_posix()
            models[role] = f"{kind}:{name}"
            model_files.append(FrozenFile(name, sha256_of(target)))
    challenge = Challenge(
        name=settings.name or _find_title(definition),
        task=None,
        profile=settings.profile.name,
        profile_version=settings.profile.version,
        rule="",
        seed=settings.seed,
        n_resamples=settings.n_resamples,
        metrics=tuple(measure.id for measure in definition.measures),
        cases=tuple(map(FrozenCase, case_ids)),
        express=(),
        clinical=clinical,
        columns=columns,
        ladder=settings.ladder,
        limits=settings.limits,
        definitions=_freeze_definitions(folder, (definition, *honest)),
        code=freeze_code((definition, *honest), tuple(models.values())),
        models=models,
        model_files=tuple(model_files),
        truth=tuple(FrozenFile(name, sha256_of_large(root / name)) for name in names),
        software=software_version(),
        created=now_utc(),
    )
    (folder / SUBMISSIONS).mkdir(parents=True, exist_ok=True)
    write_challenge(folder, challenge, ChallengePlaces(relative_place(root, folder)))
    opened = read_challenge(folder)
    load_models(challenge.models, folder)
    report_progress(1, 1, "Finished")
    return BegunChallenge(opened, (*definition.notes, *notes, *_note_columns(opened, definition)))


def _refuse_ladder(definition: ChallengeDefinition, settings: ChallengeSettings) -> None:
    """Raise `CaseError` if a ladder is requested but attempts have no score of their own."""
    if settings.ladder and definition.ranking.by is not RankBy.SCORE:
        raise CaseError(
            f"expected a ranking by a score for the ladder, but {definition.name} ranks by "
            f"{definition.ranking.by.value}, which also depends on the other teams: rank by a "
            "score, or leave the ladder out"
        )


def _require_enough(settings: ChallengeSettings) -> None:
    if settings.rule is UnusableRule.LEAVE_OUT:
        raise CaseError(
            "expected a rule that allows a ranking, but found leave-out, under which a team gains "
            "by leaving out hard cases: choose a different rule"
        )
    require_rule(settings.profile, settings.rule)
    has_masks = settings.reference is not None or settings.images is not None
    if settings.wants_responses and settings.clinical is None:
        raise CaseError(
            "expected a clinical table with pcr for a challenge of responses, but found none",
            remedies=(Remedy("clinical", ("FILE",)),),
        )
    if settings.wants_masks and not has_masks and not settings.case_ids:
        raise CaseError(
            "expected reference masks or a list of cases, but found neither: choose the masks, "
            "the data set of the images, or, for a challenge with tables only, enter the case ids",
            remedies=(
                Remedy("reference", ("DIR",)),
                Remedy("images", ("DATASET",)),
                Remedy("case_list", ("FILE",)),
            ),
        )


def _find_references(
    settings: ChallengeSettings, data_set: DataSet | None
) -> dict[str, tuple[str, Path]]:
    """Return the case id and the mask path of each reference, by `case_key`."""
    masks: dict[str, Path] = {}
    if settings.reference is not None:
        masks = dict(find_masks(settings.reference))
        if not masks:
            raise no_mask_error(settings.reference)
    elif data_set is not None:
        masks = {case.case_id: case.reference for case in data_set.cases if case.reference}
        if not masks and settings.wants_masks:
            raise FormatError(
                f"expected reference masks in {data_set.root}, but found none: choose the folder "
                "of the masks",
                remedies=(Remedy("reference", ("DIR",)),),
            )
    if len({mask.parent for mask in masks.values()}) > 1:
        raise FormatError(
            "expected all reference masks in one folder, but found several: choose the folder of "
            "the masks",
            remedies=(Remedy("reference", ("DIR",)),),
        )
    return {case_key(case_id): (case_id, path) for case_id, path in masks.items()}


def _choose_cases(
    settings: ChallengeSettings, references: dict[str, tuple[str, Path]]
) -> tuple[str, ...]:
    if settings.case_ids:
        keys = [case_key(case_id) for case_id in settings.case_ids]
        if len(set(keys)) < len(keys):
            raise CaseError(
                "expected each case once in the list, but at least one is listed twice (ignoring "
                "letter case): remove the duplicate"
            )
        missing = [
            case_identifier
            for case_identifier in settings.case_ids
            if case_key(case_identifier) not in references
        ]
        if references and missing:
            raise CaseError(
                "expected a reference mask for each case, but found none for "
                f"{', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}: add the mask, or "
                "remove the case from the list"
            )
        spelled = {key: case_id for key, (case_id, _) in references.items()}
        return tuple(
            spelled.get(key, case_identifier)
            for key, case_identifier in zip(keys, settings.case_ids, strict=True)
        )
    if settings.wants_masks:
        return tuple(case_id for case_id, _ in references.values())
    if settings.clinical is None:
        return ()
    cohort = needed_table(settings.clinical, settings.columns, RESPONSE)
    return tuple(record.case_id for record in cohort.records if record.pcr is not None)


def _measure_references(
    case_ids: tuple[str, ...],
    references: dict[str, tuple[str, Path]],
    measured: ChallengeDefinition | None = None,
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the tumour volume of each case in mm³, and notes on the references.

    Parameters
    ----------
    case_ids
        The cases.
    references
        The id and the mask of each reference.
    measured
        A definition with its own labels or measures; the volume then includes all its label values.

    Raises
    ------
    FormatError
        If a label of the definition is in none of the references.
    """
    volumes = {}
    values: dict[str, set[int]] = {}
    for number, case_id in enumerate(case_ids):
        report_progress(number, len(case_ids), f"Reading the reference of {case_id}")
        if case_key(case_id) in references:
            labels = read_labels(references[case_key(case_id)][1])
            region = labels.foreground() if measured is None else labels.crop != 0
            n_voxels = int(region.sum())
            values[case_id] = set() if measured is None else set(map(int, labels.values))
            volumes[case_id] = n_voxels * labels.grid.voxel_volume_mm3
    empty = [case_id for case_id, volume in volumes.items() if not volume]
    notes = [f"empty references: {len(empty)} ({', '.join(empty[:5])})"] if empty else []
    for label, codes in measured.answer.labels.items() if measured else ():
        n_cases = sum(bool(of_case & set(codes)) for of_case in values.values())
        if not n_cases:
            there = sorted(set().union(*values.values()))
            raise FormatError(
                f"expected the label {label} ({name_some([str(code) for code in codes])}) in a "
                f"reference, but they only have the values {name_some([*map(str, there)], 20)}: "
                "correct answer.labels in the definition"
            )
        notes.append(f"label {label}: in {n_cases} of {count_of(len(case_ids), 'reference')}")
    return volumes, tuple(notes)


def _choose_express(
    settings: ChallengeSettings, case_ids: tuple[str, ...], volumes: dict[str, float]
) -> tuple[str, ...]:
    """Choose the express-lane cases for a trial run, the hardest case (a small tumour) first."""
    if settings.express:
        spelled = {case_key(case_id): case_id for case_id in case_ids}
        missing = [
            express_id for express_id in settings.express if case_key(express_id) not in spelled
        ]
        if missing:
            raise CaseError(
                "expected the express-lane cases to be in the challenge, but it does not list "
                f"{name_some(missing)}: choose cases of the challenge"
            )
        return tuple(
            dict.fromkeys(spelled[case_key(express_id)] for express_id in settings.express)
        )
    order = sorted(
        case_ids,
        key=lambda case_identifier: (volumes.get(case_identifier, 0.0) or np.inf, case_identifier),
    )
    places = (0, (len(order) - 1) // 2, len(order) - 1)
    return tuple(dict.fromkeys(order[index] for index in places))[:N_EXPRESS]


def _copy_clinical(
    folder: Path, settings: ChallengeSettings, case_ids: Sequence[str]
) -> tuple[FrozenFile | None, FrozenFile | None]:
    """Read the clinical table and its column file, and copy both.

    A definition that ranks by its own measures needs no fairness. Fields for fairness that the
    table lacks are then declared absent.
    """
    definition, source = settings.definition, settings.clinical
    if source is None:
        if definition is not None:
            find_sites(definition, case_ids, None)
        return None, None
    choice = columns_for(source, settings.columns)
    if definition is None or definition.is_by_profile:
        needed_table(source, choice, RESPONSE if settings.wants_responses else FAIRNESS)
    else:
        cohort = read_clinical(source, choice)
        find_sites(definition, case_ids, cohort)
        choice = choice.with_names(dict.fromkeys(lacking(cohort, choice)))
    target = folder / _CLINICAL / source.name
    with (
        open_plain(source) as stream,
        saving(target, overwrite=True) as temporary,
        temporary.open("xb") as sink,
    ):
        copyfileobj(stream, sink)
    table = FrozenFile(f"{_CLINICAL}/{source.name}", sha256_of(target))
    if choice == BY_NAME:
        return table, None
    beside = target.with_name(COLUMNS_FILE)
    write_column_file(choice, beside, overwrite=True)
    return table, FrozenFile(f"{_CLINICAL}/{COLUMNS_FILE}", sha256_of(beside))


def _freeze_case(
    case_id: str, reference: tuple[str, Path] | None, data_set: DataSet | None
) -> FrozenCase:
    frozen = None
    if reference is not None:
        if len(apart := files_of_volume(reference[1])) > 1:
            raise FormatError(
                f"expected one reference file for {case_id}, because the challenge stores its "
                f"checksum (SHA-256), but found {' and '.join(path.name for path in apart)}: "
                "convert it to one .nii.gz or .mha file"
            )
        frozen = FrozenFile(reference[1].name, sha256_of(reference[1]))
    if data_set is None:
        return FrozenCase(case_id, frozen)
    files = data_set.case(case_id)
    paths = dict.fromkeys(path for phase in files.phases for path in phase.files)
    root = data_set.root.resolve()
    images = tuple(
        FrozenFile(path.resolve().relative_to(root).as_posix(), sha256_of_large(path))
        for path in paths
    )
    return FrozenCase(case_id, frozen, images)
