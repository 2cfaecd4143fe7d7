"""Settings of a scoring run."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.core.provenance import Setting
from napari_mamamia.io.clinical.columns import BY_NAME, ColumnChoice
from napari_mamamia.io.data_set.case_list import CaseList
from napari_mamamia.scoring.case.profiles import CLINICAL, Profile
from napari_mamamia.scoring.cohort.disparities import MINIMUM_GROUP
from napari_mamamia.scoring.cohort.policy import require_rule
from napari_mamamia.scoring.cohort.ranking import NO_COMPOSITES, CompositeChoice
from napari_mamamia.scoring.cohort.results import Resampling
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """Definitions and options of a scoring run.

    Parameters
    ----------
    profile
        The definitions of all scores.
    clinical
        The clinical table for fairness; None leaves fairness undefined.
    label
        The tumour value, for a profile that allows this choice; None stands for every value above
        0.
    n_resamples
        The number of bootstrap resamples for the intervals; 0 for none.
    seed
        The random seed of resamples and permutations.
    composites
        The requested variants of the ranking score, and the baseline.
    images
        The data set with the images of the masks, for checks of low contrast. Its workspace is used
        for tags unless `workspace` is set.
    workspace
        The folder with readers' tags of the cases.
    columns
        The user's choice of columns of the clinical table, and the fields declared absent.
    unusable
        The rule for cases without a usable prediction; None stands for the profile's rules.
    cases
        The cases that count; None stands for the cases with a reference or, in a table, with a row.
    metric_definition
        A description of how a table's metrics were computed; "" stands for the table's own
        description.
    minimum_group
        The smallest size of a group in the intervals of gaps, in tests and in sentences, which is
        at least 2, because one patient has no spread. The score itself is not affected.
    with_report
        Whether to write the report and the figures too.

    Raises
    ------
    ValueError
        If `label` is 0 or the profile has its own foreground, a number is negative, or the profile
        has no worst value for the rule of unusable cases.
    """

    profile: Profile = CLINICAL
    clinical: Path | None = None
    label: float | str | None = None
    n_resamples: int = N_RESAMPLES
    seed: int = SEED
    composites: CompositeChoice = NO_COMPOSITES
    images: Path | None = None
    workspace: Path | None = None
    columns: ColumnChoice = BY_NAME
    unusable: UnusableRule | None = None
    cases: CaseList | None = None
    metric_definition: str = ""
    minimum_group: int = MINIMUM_GROUP
    with_report: bool = True

    def __post_init__(self) -> None:
        Resampling(self.n_resamples, self.seed)
        require_rule(self.profile, self.unusable)
        if self.minimum_group < 2:
            raise ValueError(
                "expected the smallest group size to be 2 or above, so that groups have a "
                f"spread, but got {self.minimum_group}: choose 5, for example"
            )
        if self.label == 0:
            raise ValueError("the label 0 is the background: choose a different label")
        if self.label is not None and not self.profile.chooses_label:
            raise ValueError(
                f"the profile {self.profile.name} defines its own foreground, so it cannot be "
                f"combined with the label {self.label}: omit the label, or choose the clinical "
                "profile"
            )

    @property
    def label_value(self) -> float | None:
        """The tumour value in a mask that was read with `label`; 1 for a named segment."""
        return None if isinstance(self.label, str) else self.label

    @property
    def resampling(self) -> Resampling:
        """The number of resamples and the seed."""
        return Resampling(self.n_resamples, self.seed)

    @property
    def parameters(self) -> tuple[tuple[str, Setting], ...]:
        """The name and value of each setting, as recorded in ``run.json``."""
        parameters = (
            ("composites", ", ".join(self.composites.names) or None),
            ("gate", self.composites.gate),
            ("baseline", self.composites.baseline or None),
            ("images", self.images.name if self.images else None),
            ("columns", str(self.columns) or None),
            ("unusable", self.unusable),
            ("cases", self.cases.name if self.cases else None),
            ("cases_digest", self.cases.digest if self.cases else None),
            ("metric_definition", self.metric_definition or None),
            ("minimum_group", self.minimum_group if self.minimum_group != MINIMUM_GROUP else None),
        )
        return (
            ("profile", self.profile.name),
            ("profile_version", self.profile.version),
            ("clinical", self.clinical.name if self.clinical else None),
            ("label", self.label),
            ("bootstrap", self.n_resamples),
            ("seed", self.seed),
            *((name, value) for name, value in parameters if value is not None),
        )
