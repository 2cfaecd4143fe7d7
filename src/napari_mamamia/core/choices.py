"""Choices that a person makes by name: the command line, the library and the window take them here.

An enum whose values can be typed is defined once, where importing it costs nothing: so the command
line offers the very enum that the science takes, and `mamamia --help` stays quick.
"""

from enum import StrEnum
from typing import Literal, TypeAlias


class Task(StrEnum):
    """What a submission is asked for."""

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
    """What keeps a program in."""

    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    PODMAN = "podman"
    NONE = "none"


class IsolationChoice(StrEnum):
    """An `IsolationKind`, or the best that this computer has."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    PODMAN = "podman"
    NONE = "none"


class Clock(StrEnum):
    """Elements that may order the images of one place in time, in the order of belief.

    `ACQUIRED` is the sum of two: on some scanners TriggerTime starts anew with each series.
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
    """What becomes of two breasts in two sagittal stacks: ask, one case, or a case for each."""

    ASK = "ask"
    JOIN = "join"
    TWO = "two"


class Dates(StrEnum):
    """What becomes of the date of the exam."""

    DROP = "drop"
    SHIFT = "shift"


class TransformKind(StrEnum):
    """How far a registration may go: rigid alone, or rigid and then B-spline."""

    RIGID = "rigid"
    BSPLINE = "bspline"


class Interpolation(StrEnum):
    """How a phase that is moved is read between its voxels; `BSPLINE` is cubic."""

    LINEAR = "linear"
    BSPLINE = "bspline"


class TissueModel(StrEnum):
    """TOFTS: C = Ktrans Cp (x) exp(-kep t), kep = Ktrans / ve. EXTENDED: + vp Cp.

    Source: Tofts 1999 (JMRI 10:223); OSIPI CAPLEX M.IC1.004, M.IC1.005.
    """

    TOFTS = "tofts"
    EXTENDED = "extended-tofts"


class InputName(StrEnum):
    """Whose curve. PARKER and GEORGIOU are of whole blood, WEINMANN of plasma.

    Sources: Parker 2006 (MRM 56:993, OSIPI M.IC2.001); Georgiou 2018 (doi 10.1002/mrm.27524,
    M.IC2.002); Weinmann 1984 with the constants of Tofts and Kermode 1991 (M.IC2.003).
    """

    PARKER = "parker"
    GEORGIOU = "georgiou"
    WEINMANN = "weinmann"


class FusionRule(StrEnum):
    """How several models' answers become one.

    ``mean``: the mean of their probabilities, above 0.5. ``majority``: what more than half of them
    marked; a tie is background. ``staple``: STAPLE's estimate of the truth, at least 0.5.
    """

    MEAN = "mean"
    MAJORITY = "majority"
    STAPLE = "staple"

    @property
    def said(self) -> str:
        """The rule in words, to be followed by the models' names."""
        return {"mean": "mean", "majority": "majority vote", "staple": "STAPLE"}[self.value]


class Device(StrEnum):
    """Where a network runs; AUTO is the fastest that is there."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class Backend(StrEnum):
    """What runs a network; AUTO is what its kind and the device allow."""

    AUTO = "auto"
    TORCH = "torch"
    OPENVINO = "openvino"


class ProfileName(StrEnum):
    """The names of `scoring.case.profiles.PROFILES`."""

    OFFICIAL_CODE = "official-code"
    PAPER = "paper"
    CLINICAL = "clinical"


class UnusableRule(StrEnum):
    """What a case is worth that has no usable prediction."""

    REJECT = "reject"
    """The whole submission has no ranked number."""
    LEAST_FAVOURABLE = "least-favourable"
    """The cases take those values between worst and best that make the ranking score lowest."""
    WORST_SCORE = "worst-score"
    """Dice 0 and the worst NormHD."""
    LEAVE_OUT = "leave-out"
    """The case does not count; only where nothing is ranked."""


class SiteShare(StrEnum):
    """What a site gives away: metrics of each case under a code, or aggregates of many."""

    CASES = "cases"
    AGGREGATES = "aggregates"


UnusableRuleName: TypeAlias = Literal["reject", "least-favourable", "worst-score", "leave-out"]
"""The values of `UnusableRule`, for the types of the library."""


class CompositeName(StrEnum):
    """The variants that a user can ask for."""

    WEIGHTED = "weighted"
    """The challenge's own ranking score."""
    GATED = "gated"
    """Fairness counts only above a threshold, or above the baseline's interval."""
    ADAPTIVE = "adaptive"
    """The weight of fairness grows with the performance."""


class RankMethod(StrEnum):
    """How values of several algorithms become ranks."""

    MEAN = "mean-then-rank"
    MEDIAN = "median-then-rank"
    Q05 = "q05-then-rank"
    """By the value that 5 % of the cases are worse than."""
    RANK_MEAN = "rank-then-mean"
    RANK_MEDIAN = "rank-then-median"
    TEST = "test-then-rank"
    """By how many others are beaten significantly: one-sided Wilcoxon signed-rank tests."""
    COMPOSITE = "composite"
    """By the challenge's own score, where a profile gives one."""


class RankTies(StrEnum):
    """Which rank equal ones share: the better one (1, 2, 2, 4), or the mean (1, 2.5, 2.5, 4)."""

    MIN = "min"
    AVERAGE = "average"


class Correction(StrEnum):
    """What is done about many tests."""

    NONE = "none"
    HOLM = "holm"


class RankResampling(StrEnum):
    """What a case becomes that is drawn several times: as many cases, or challengeR's reading."""

    CASES = "cases"
    CHALLENGER = "challengeR-1.0.5"


class MissingKind(StrEnum):
    """What a case counts for an algorithm that has no value for it."""

    VALUE = "value"
    """A value that the user names, such as 0."""
    WORST_RANK = "worst-rank"
    """Worse than every value: the last rank in the case."""
    WORST_RANK_CHALLENGER = "worst-rank-challenger"
    """The same; in the case the largest rank that was given, plus 1."""
    DROP_CASE = "drop-case"
    """The case is left out for all."""


class SiteRule(StrEnum):
    """How the ranks of several sites become one; see docs/methods/ranking.md."""

    FETS_2022 = "fets-2022"
    FETS_2022_R = "fets-2022-R"
    FETS_2021_PAGE = "fets-2021-page"
    BRATS = "brats"


class ExportFormat(StrEnum):
    """What a bundle may hold, each in its own folder."""

    NIFTI = "nifti"
    DICOM_SEG = "dicom-seg"
    CHALLENGE = "challenge"
    NNUNET = "nnunet"
    BIDS = "bids"
    SLICER = "slicer"


FormatName: TypeAlias = Literal["nifti", "dicom-seg", "challenge", "nnunet", "bids", "slicer"]
"""The values of `ExportFormat`, for the types of the library."""


class OrientationProfile(StrEnum):
    """A named rule for how exported volumes lie; letters are directions that axes run towards."""

    AS_IS = "as-is"
    LAS_PSR = "las-psr"
    RAS = "ras"
    LPS = "lps"


class FuseRule(StrEnum):
    """How several readers' masks become one more."""

    NONE = "none"
    MAJORITY = "majority"
    STAPLE = "staple"


class TieRule(StrEnum):
    """What a voxel becomes for which two labels have equally many votes.

    ``background`` gives 0; ``foreground`` the smallest tied label that is not 0; ``first`` the tied
    label of the reader named first.
    """

    BACKGROUND = "background"
    FOREGROUND = "foreground"
    FIRST = "first"


class SegmentMaker(StrEnum):
    """How a mask was drawn, in DICOM's words; from the provenance unless it is said."""

    FROM_PROVENANCE = "from-provenance"
    MANUAL = "manual"
    SEMIAUTOMATIC = "semiautomatic"
    AUTOMATIC = "automatic"


class MissingScore(StrEnum):
    """What a case counts for which a classifier gave no usable score."""

    LEAST_FAVOURABLE = "least-favourable"
    """Below every score where the case is positive, above every one where it is not: no number of
    the model can be lower by any score that it might have given."""
    LEAVE_OUT = "leave-out"
    """Nothing, for no model: a model that leaves out what is hard gains by it."""


class LesionMatching(StrEnum):
    """Which predicted box finds which lesion.

    `GREEDY_SCORE`: boxes by falling score, each takes the free lesion that it overlaps most.
    `HUNGARIAN`: as many pairs as can be, then the largest sum of overlaps; scores do not count.
    `ANY_OVERLAP`: whatever shares volume, many to many.
    """

    GREEDY_SCORE = "greedy-score"
    HUNGARIAN = "hungarian"
    ANY_OVERLAP = "any-overlap"


class DuplicateRule(StrEnum):
    """What a second box on a lesion that is found already counts as."""

    FALSE_POSITIVE = "false-positive"
    IGNORED = "ignored"


class LesionOverlap(StrEnum):
    """What the overlap of a lesion and a predicted one is measured by."""

    BOX_IOU = "box-iou"
    MASK_IOU = "mask-iou"
    MASK_DICE = "mask-dice"


class BoxRule(StrEnum):
    """The box of a part of a mask: its voxels' outer faces, or nnDetection's half a voxel more."""

    TIGHT = "tight"
    NNDETECTION = "nndetection"


class CurveReading(StrEnum):
    """Sensitivity between two points of a FROC curve: on their line, or that of the lower one."""

    LINEAR = "linear"
    STEP = "step"


class CaseScoreRule(StrEnum):
    """The score of a case from its boxes': the highest, or 1 - product of (1 - score)."""

    MAX = "max"
    NOISY_OR = "noisy-or"


class RiskModel(StrEnum):
    """The risk of a lesion by its size: Sopik 2018 (a share of 0.641) or Verschraegen 2005."""

    SOPIK_2018 = "sopik-2018"
    VERSCHRAEGEN_2005 = "verschraegen-2005"
