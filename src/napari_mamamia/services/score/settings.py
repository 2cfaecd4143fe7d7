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
        The definitions of all numbers.
    clinical
        The clinical table for fairness; None leaves fairness undefined.
    label
        The value for tumour, for a profile that lets the user choose; None takes every value above
        0.
    n_resamples
        Bootstrap resamples for the intervals; 0 for none.
    seed
        Seed of resamples and permutations.
    composites
        Requested variants of the ranking score, and the baseline.
    images
        The data set of the masks, to check for low contrast. Its workspace is used
        for tags unless another is given.
    workspace
        The folder with readers' tags of the cases.
    columns
        The user's choice of columns of the clinical table, and the fields declared absent.
    unusable
        The rule for cases without a usable prediction; None takes the profile's rules.
    cases
        The cases that count; None takes those with a reference (in a table: with a row).
    metric_definition
        Description of how a table's metrics were computed; "" uses the table's own description.
    minimum_group
        Smallest group in the intervals of gaps, in tests and in sentences; the score stays as the
        profile defines it. At least 2, because one patient has no spread.
    with_report
        Whether to write the report and the figures, too.

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
                f"expected a smallest group of 2 cases or more, got {self.minimum_group}: one "
                "patient has no spread, so choose 5, for example"
            )
        if self.label == 0:
            raise ValueError(
                "expected a label other than 0, which is background: choose another label"
            )
        if self.label is not None and not self.profile.chooses_label:
            raise ValueError(
                f"expected no label under the profile {self.profile.name}, which defines its own "
                f"foreground, got {self.label}: leave the label out or choose the profile clinical"
            )

    @property
    def label_value(self) -> float | None:
        """The value for tumour in a mask read with `label`; 1 for a named segment."""
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
