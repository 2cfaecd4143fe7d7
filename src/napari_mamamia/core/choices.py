"""Options that a user chooses by name, for the command line, the library and the window.

These enums are defined here because this module is quick to import: the command line lists their
values as options, and `mamamia --help` must start quickly.
"""

from enum import StrEnum
from typing import Literal, TypeAlias


class Task(StrEnum):
    """The results that a submission must deliver."""

    SEGMENTATION = "segmentation"
    CLASSIFICATION = "classification"
    BOTH = "both"

    @property
    def wants_masks(self) -> bool:
        """Whether each case needs a mask."""
        return self is not Task.CLASSIFICATION

    @property
    def wants_responses(self) -> bool:
        """Whether each case needs a predicted response."""
        return self is not Task.SEGMENTATION


class IsolationKind(StrEnum):
    """The kinds of sandbox in which an untrusted program can run."""

    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    PODMAN = "podman"
    NONE = "none"


class IsolationChoice(StrEnum):
    """A sandbox chosen by name, or (AUTO) the strongest that this computer supports."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    PODMAN = "podman"
    NONE = "none"


class Clock(StrEnum):
    """DICOM elements that can order the images of one slice position in time, most reliable first.

    `ACQUIRED` is the sum of two elements, because TriggerTime restarts with each series on some
    scanners.
    """

    TEMPORAL_POSITION = "TemporalPositionIdentifier"
    ACQUISITION_TIME = "AcquisitionTime"
    CONTENT_TIME = "ContentTime"
    TRIGGER_TIME = "TriggerTime"
    ACQUIRED = "AcquisitionTime+TriggerTime"
    ACQUISITION_NUMBER = "AcquisitionNumber"
    INSTANCE_NUMBER = "InstanceNumber"
    SERIES = "SeriesNumber"


class Sides(StrEnum):
    """How to import separate image stacks of the two breasts: ask, make one case, or make two."""

    ASK = "ask"
    JOIN = "join"
    TWO = "two"


class Dates(StrEnum):
    """How the exam date is exported."""

    DROP = "drop"
    SHIFT = "shift"


class TransformKind(StrEnum):
    """The transform of a registration: rigid only, or rigid followed by B-spline."""

    RIGID = "rigid"
    BSPLINE = "bspline"


class Interpolation(StrEnum):
    """How a registered phase is interpolated between its voxels; `BSPLINE` is cubic."""

    LINEAR = "linear"
    BSPLINE = "bspline"


class TissueModel(StrEnum):
    """The model of contrast uptake in tissue.

    TOFTS: C = Ktrans Cp (x) exp(-kep t), kep = Ktrans / ve. EXTENDED: + vp Cp.

    Source: Tofts 1999 (JMRI 10:223); OSIPI CAPLEX M.IC1.004, M.IC1.005.
    """

    TOFTS = "tofts"
    EXTENDED = "extended-tofts"


class InputName(StrEnum):
    """The arterial input function.

    PARKER and GEORGIOU give the concentration in whole blood, WEINMANN in plasma.

    Sources: Parker 2006 (MRM 56:993, OSIPI M.IC2.001); Georgiou 2018 (doi 10.1002/mrm.27524,
    M.IC2.002); Weinmann 1984 with the constants of Tofts and Kermode 1991 (M.IC2.003).
    """

    PARKER = "parker"
    GEORGIOU = "georgiou"
    WEINMANN = "weinmann"


class FusionRule(StrEnum):
    """How the outputs of several models are combined.

    ``mean``: voxels whose mean probability is above 0.5. ``majority``: voxels that more than half
    of the models segmented; a tie is background. ``staple``: voxels whose probability estimated by
    STAPLE is at least 0.5.
    """

    MEAN = "mean"
    MAJORITY = "majority"
    STAPLE = "staple"

    @property
    def said(self) -> str:
        """Phrase that describes the rule; the names of the models follow it."""
        return {"mean": "mean", "majority": "majority vote", "staple": "STAPLE"}[self.value]


class Device(StrEnum):
    """The device that a network runs on; AUTO is the fastest available one."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class Backend(StrEnum):
    """The library that runs a network; AUTO chooses it by the kind of model and the device."""

    AUTO = "auto"
    TORCH = "torch"
    OPENVINO = "openvino"


class ProfileName(StrEnum):
    """The names of the scoring profiles in `scoring.case.profiles.PROFILES`."""

    OFFICIAL_CODE = "official-code"
    PAPER = "paper"
    CLINICAL = "clinical"


class UnusableRule(StrEnum):
    """How a case without a usable prediction is scored."""

    REJECT = "reject"
    """The whole submission gets no ranking score."""
    LEAST_FAVOURABLE = "least-favourable"
    """The cases get the values, between worst and best, that minimise the ranking score."""
    WORST_SCORE = "worst-score"
    """The cases get a Dice of 0 and the worst NormHD."""
    LEAVE_OUT = "leave-out"
    """The cases are excluded; this is allowed only if no ranking score is computed."""


class SiteShare(StrEnum):
    """The data that a site shares: metrics of each coded case, or aggregates over cases."""

    CASES = "cases"
    AGGREGATES = "aggregates"


UnusableRuleName: TypeAlias = Literal["reject", "least-favourable", "worst-score", "leave-out"]
"""The values of `UnusableRule`, as a type for library arguments."""


class CompositeName(StrEnum):
    """Variants of the ranking score."""

    WEIGHTED = "weighted"
    """The challenge's own ranking score."""
    GATED = "gated"
    """Fairness counts only above a threshold, or above the confidence interval of the baseline."""
    ADAPTIVE = "adaptive"
    """The weight of fairness increases with the performance."""


class RankMethod(StrEnum):
    """How a ranking orders algorithms by their metric values."""

    MEAN = "mean-then-rank"
    MEDIAN = "median-then-rank"
    Q05 = "q05-then-rank"
    """By the 5 % quantile of the values, below which the worst 5 % of the cases lie."""
    RANK_MEAN = "rank-then-mean"
    RANK_MEDIAN = "rank-then-median"
    TEST = "test-then-rank"
    """By the number of other algorithms that are significantly worse in one-sided Wilcoxon
    signed-rank
    tests.
    """
    COMPOSITE = "composite"
    """By the challenge's ranking score, if a profile defines one."""


class RankTies(StrEnum):
    """The rank of tied values: the lowest (1, 2, 2, 4), or the mean (1, 2.5, 2.5, 4)."""

    MIN = "min"
    AVERAGE = "average"


class Correction(StrEnum):
    """The correction of p-values for multiple testing."""

    NONE = "none"
    HOLM = "holm"


class RankResampling(StrEnum):
    """How a bootstrap counts a case drawn twice: as two cases, or as one case as in challengeR."""

    CASES = "cases"
    CHALLENGER = "challengeR-1.0.5"


class MissingKind(StrEnum):
    """How a case is counted for an algorithm that has no value for it."""

    VALUE = "value"
    """The case gets a value that the user specifies, such as 0."""
    WORST_RANK = "worst-rank"
    """The case counts as worse than every value and gets the last rank."""
    WORST_RANK_CHALLENGER = "worst-rank-challenger"
    """The case gets the largest rank assigned for that case, plus 1."""
    DROP_CASE = "drop-case"
    """The case is excluded for all algorithms."""


class SiteRule(StrEnum):
    """How the ranks of several sites are combined; see docs/methods/ranking.md."""

    FETS_2022 = "fets-2022"
    FETS_2022_R = "fets-2022-R"
    FETS_2021_PAGE = "fets-2021-page"
    BRATS = "brats"


class ExportFormat(StrEnum):
    """A format of an export bundle; each format has its own folder."""

    NIFTI = "nifti"
    DICOM_SEG = "dicom-seg"
    CHALLENGE = "challenge"
    NNUNET = "nnunet"
    BIDS = "bids"
    SLICER = "slicer"


FormatName: TypeAlias = Literal["nifti", "dicom-seg", "challenge", "nnunet", "bids", "slicer"]
"""The values of `ExportFormat`, as a type for library arguments."""


class OrientationProfile(StrEnum):
    """A rule for the orientation of exported volumes; each letter is the direction of an axis."""

    AS_IS = "as-is"
    LAS_PSR = "las-psr"
    RAS = "ras"
    LPS = "lps"


class FuseRule(StrEnum):
    """How the masks of several readers are fused into one mask."""

    NONE = "none"
    MAJORITY = "majority"
    STAPLE = "staple"


class TieRule(StrEnum):
    """The label of a voxel on which two labels have the same number of votes.

    ``background``: 0. ``foreground``: the smallest tied label other than 0. ``first``: the tied
    label of the reader who is listed first.
    """

    BACKGROUND = "background"
    FOREGROUND = "foreground"
    FIRST = "first"


class SegmentMaker(StrEnum):
    """How a mask was drawn, in DICOM's terms; the default comes from the provenance."""

    FROM_PROVENANCE = "from-provenance"
    MANUAL = "manual"
    SEMIAUTOMATIC = "semiautomatic"
    AUTOMATIC = "automatic"


class MissingScore(StrEnum):
    """How a case without a usable classifier score is counted."""

    LEAST_FAVOURABLE = "least-favourable"
    """The score counts as lower than all others in a positive case, and as higher in a negative
    case.

    No other score could give the model a lower result.
    """
    LEAVE_OUT = "leave-out"
    """The case is excluded for all models, so a model gains by omitting difficult cases."""


class LesionMatching(StrEnum):
    """How predicted boxes are matched to lesions.

    `GREEDY_SCORE`: in order of decreasing score, each box is matched to the unmatched lesion with
    the largest overlap. `HUNGARIAN`: the number of pairs is maximised, then the sum of their
    overlaps; scores are ignored. `ANY_OVERLAP`: every box is matched to every lesion that it
    overlaps.
    """

    GREEDY_SCORE = "greedy-score"
    HUNGARIAN = "hungarian"
    ANY_OVERLAP = "any-overlap"


class DuplicateRule(StrEnum):
    """How a box is counted if its lesion is already matched to another box."""

    FALSE_POSITIVE = "false-positive"
    IGNORED = "ignored"


class LesionOverlap(StrEnum):
    """The measure of overlap between a lesion and a predicted lesion."""

    BOX_IOU = "box-iou"
    MASK_IOU = "mask-iou"
    MASK_DICE = "mask-dice"


class BoxRule(StrEnum):
    """Where the box of a component ends: at the outer voxel faces, or half a voxel beyond."""

    TIGHT = "tight"
    NNDETECTION = "nndetection"


class CurveReading(StrEnum):
    """Sensitivity between two points of a FROC curve: interpolated, or that of the lower point."""

    LINEAR = "linear"
    STEP = "step"


class CaseScoreRule(StrEnum):
    """How a case score is computed from box scores: maximum, or 1 - product of (1 - score)."""

    MAX = "max"
    NOISY_OR = "noisy-or"


class RiskModel(StrEnum):
    """The model of a lesion's risk as a function of its size.

    The members name the source: Sopik 2018 (with the factor 0.641) or Verschraegen 2005.
    """

    SOPIK_2018 = "sopik-2018"
    VERSCHRAEGEN_2005 = "verschraegen-2005"
