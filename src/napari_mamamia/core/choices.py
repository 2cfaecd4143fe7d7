"""Choices that a user makes by name; the command line, the library and the window use them.

An enum whose values can be typed is defined here, where importing it is cheap: the command line
offers the enum that the science code takes, and `mamamia --help` stays fast.
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
    """The means of isolation of a foreign program."""

    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    PODMAN = "podman"
    NONE = "none"


class IsolationChoice(StrEnum):
    """An `IsolationKind`, or the strongest one that this computer supports."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    PODMAN = "podman"
    NONE = "none"


class Clock(StrEnum):
    """DICOM elements that may order the images of one slice position in time, most reliable first.

    `ACQUIRED` is the sum of two: on some scanners TriggerTime restarts with each series.
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
    """How two breasts in two sagittal stacks are imported: ask, one case, or a case for each."""

    ASK = "ask"
    JOIN = "join"
    TWO = "two"


class Dates(StrEnum):
    """How the date of the exam is exported."""

    DROP = "drop"
    SHIFT = "shift"


class TransformKind(StrEnum):
    """The transform of a registration: rigid alone, or rigid and then B-spline."""

    RIGID = "rigid"
    BSPLINE = "bspline"


class Interpolation(StrEnum):
    """How a moved phase is interpolated between its voxels; `BSPLINE` is cubic."""

    LINEAR = "linear"
    BSPLINE = "bspline"


class TissueModel(StrEnum):
    """The model of tissue uptake.

    TOFTS: C = Ktrans Cp (x) exp(-kep t), kep = Ktrans / ve. EXTENDED: + vp Cp.

    Source: Tofts 1999 (JMRI 10:223); OSIPI CAPLEX M.IC1.004, M.IC1.005.
    """

    TOFTS = "tofts"
    EXTENDED = "extended-tofts"


class InputName(StrEnum):
    """The arterial input function. PARKER and GEORGIOU are of whole blood, WEINMANN of plasma.

    Sources: Parker 2006 (MRM 56:993, OSIPI M.IC2.001); Georgiou 2018 (doi 10.1002/mrm.27524,
    M.IC2.002); Weinmann 1984 with the constants of Tofts and Kermode 1991 (M.IC2.003).
    """

    PARKER = "parker"
    GEORGIOU = "georgiou"
    WEINMANN = "weinmann"


class FusionRule(StrEnum):
    """How the outputs of several models are combined.

    ``mean``: the mean of their probabilities, above 0.5. ``majority``: voxels that more than half
    of them segmented; a tie is background. ``staple``: STAPLE's estimate of the truth, at least
    0.5.
    """

    MEAN = "mean"
    MAJORITY = "majority"
    STAPLE = "staple"

    @property
    def said(self) -> str:
        """Phrase for the rule, to be followed by the names of the models."""
        return {"mean": "mean", "majority": "majority vote", "staple": "STAPLE"}[self.value]


class Device(StrEnum):
    """The device that a network runs on; AUTO is the fastest available one."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class Backend(StrEnum):
    """The library that runs a network; AUTO depends on the kind of model and the device."""

    AUTO = "auto"
    TORCH = "torch"
    OPENVINO = "openvino"


class ProfileName(StrEnum):
    """The names of `scoring.case.profiles.PROFILES`."""

    OFFICIAL_CODE = "official-code"
    PAPER = "paper"
    CLINICAL = "clinical"


class UnusableRule(StrEnum):
    """How a case without a usable prediction is scored."""

    REJECT = "reject"
    """The whole submission has no ranked number."""
    LEAST_FAVOURABLE = "least-favourable"
    """These cases take the values between worst and best that make the ranking score lowest."""
    WORST_SCORE = "worst-score"
    """Dice 0 and the worst NormHD."""
    LEAVE_OUT = "leave-out"
    """The case does not count; only if nothing is ranked."""


class SiteShare(StrEnum):
    """What a site shares: metrics of each case under a code, or aggregates of many cases."""

    CASES = "cases"
    AGGREGATES = "aggregates"


UnusableRuleName: TypeAlias = Literal["reject", "least-favourable", "worst-score", "leave-out"]
"""The values of `UnusableRule`, as a type for the library."""


class CompositeName(StrEnum):
    """Variants of the ranking score that a user can choose."""

    WEIGHTED = "weighted"
    """The ranking score of the challenge."""
    GATED = "gated"
    """Fairness counts only above a threshold, or above the baseline's interval."""
    ADAPTIVE = "adaptive"
    """The fairness weight increases with the performance."""


class RankMethod(StrEnum):
    """How values of several algorithms are ranked."""

    MEAN = "mean-then-rank"
    MEDIAN = "median-then-rank"
    Q05 = "q05-then-rank"
    """By the 5 % quantile: 5 % of the cases have a worse value."""
    RANK_MEAN = "rank-then-mean"
    RANK_MEDIAN = "rank-then-median"
    TEST = "test-then-rank"
    """By how many other algorithms are beaten significantly: one-sided Wilcoxon signed-rank tests.
    """
    COMPOSITE = "composite"
    """By the challenge's ranking score, if a profile defines one."""


class RankTies(StrEnum):
    """The rank of ties: the better one (1, 2, 2, 4), or the mean (1, 2.5, 2.5, 4)."""

    MIN = "min"
    AVERAGE = "average"


class Correction(StrEnum):
    """The correction for multiple testing."""

    NONE = "none"
    HOLM = "holm"


class RankResampling(StrEnum):
    """How a case that a bootstrap draws twice counts: as two cases, or as in challengeR."""

    CASES = "cases"
    CHALLENGER = "challengeR-1.0.5"


class MissingKind(StrEnum):
    """How a case counts for an algorithm that has no value for it."""

    VALUE = "value"
    """A value that the user names, such as 0."""
    WORST_RANK = "worst-rank"
    """Worse than every value: the last rank in the case."""
    WORST_RANK_CHALLENGER = "worst-rank-challenger"
    """The largest assigned rank of the case plus 1."""
    DROP_CASE = "drop-case"
    """The case is excluded for all algorithms."""


class SiteRule(StrEnum):
    """How the ranks of several sites are combined; see docs/methods/ranking.md."""

    FETS_2022 = "fets-2022"
    FETS_2022_R = "fets-2022-R"
    FETS_2021_PAGE = "fets-2021-page"
    BRATS = "brats"


class ExportFormat(StrEnum):
    """A format in an export bundle, each in its own folder."""

    NIFTI = "nifti"
    DICOM_SEG = "dicom-seg"
    CHALLENGE = "challenge"
    NNUNET = "nnunet"
    BIDS = "bids"
    SLICER = "slicer"


FormatName: TypeAlias = Literal["nifti", "dicom-seg", "challenge", "nnunet", "bids", "slicer"]
"""The values of `ExportFormat`, as a type for the library."""


class OrientationProfile(StrEnum):
    """A named rule for the orientation of exported volumes; letters are directions of the axes."""

    AS_IS = "as-is"
    LAS_PSR = "las-psr"
    RAS = "ras"
    LPS = "lps"


class FuseRule(StrEnum):
    """How masks of several readers are fused into one."""

    NONE = "none"
    MAJORITY = "majority"
    STAPLE = "staple"


class TieRule(StrEnum):
    """The label of a voxel for which two labels have equally many votes.

    ``background`` gives 0; ``foreground`` the smallest tied label that is not 0; ``first`` the tied
    label of the reader named first.
    """

    BACKGROUND = "background"
    FOREGROUND = "foreground"
    FIRST = "first"


class SegmentMaker(StrEnum):
    """How a mask was drawn, in DICOM's terms; taken from the provenance unless stated."""

    FROM_PROVENANCE = "from-provenance"
    MANUAL = "manual"
    SEMIAUTOMATIC = "semiautomatic"
    AUTOMATIC = "automatic"


class MissingScore(StrEnum):
    """How a case counts for which a classifier gave no usable score."""

    LEAST_FAVOURABLE = "least-favourable"
    """Below every score if the case is positive, above every score if it is not: no missing score
    could have given the model a lower result.
    """
    LEAVE_OUT = "leave-out"
    """The case counts for no model: a model that omits difficult cases gains by it."""


class LesionMatching(StrEnum):
    """How predicted boxes are matched to lesions.

    `GREEDY_SCORE`: in order of decreasing score, each box takes the unmatched lesion with the
    largest overlap. `HUNGARIAN`: as many pairs as possible, then the largest sum of overlaps;
    scores are ignored. `ANY_OVERLAP`: every pair that shares volume, many to many.
    """

    GREEDY_SCORE = "greedy-score"
    HUNGARIAN = "hungarian"
    ANY_OVERLAP = "any-overlap"


class DuplicateRule(StrEnum):
    """How a box counts if another box has already matched its lesion."""

    FALSE_POSITIVE = "false-positive"
    IGNORED = "ignored"


class LesionOverlap(StrEnum):
    """The measure of overlap between a lesion and a predicted lesion."""

    BOX_IOU = "box-iou"
    MASK_IOU = "mask-iou"
    MASK_DICE = "mask-dice"


class BoxRule(StrEnum):
    """Box of a component: its voxels' outer faces, or half a voxel more (nnDetection)."""

    TIGHT = "tight"
    NNDETECTION = "nndetection"


class CurveReading(StrEnum):
    """Sensitivity between two points of a FROC curve: interpolated, or that of the lower point."""

    LINEAR = "linear"
    STEP = "step"


class CaseScoreRule(StrEnum):
    """The score of a case from those of its boxes: the maximum, or 1 - product of (1 - score)."""

    MAX = "max"
    NOISY_OR = "noisy-or"


class RiskModel(StrEnum):
    """The risk of a lesion by its size: Sopik 2018 (a share of 0.641) or Verschraegen 2005."""

    SOPIK_2018 = "sopik-2018"
    VERSCHRAEGEN_2005 = "verschraegen-2005"
