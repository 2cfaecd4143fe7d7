"""Measures of synthetic images: pixels, perception, structure, radiomics, and a model's masks."""

from collections.abc import Callable
from math import hypot, isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.features.challenge.io.definition import AnswerKind
from napari_mamamia.features.challenge.scoring.measures import (
    CaseAnswer,
    ChallengeMeasure,
    ChallengeModel,
    NotDefinedError,
    NoTruthError,
    Rows,
)
from napari_mamamia.features.challenge.segmentation.perceptual import load_alexnet
from napari_mamamia.scoring.statistics.auc import auc

_BACKGROUND: Final = -1.5
_SMOOTHING: Final = 20
_LOWEST_PEAK: Final = 0.1
_PEAKS_APART: Final = 0.1
_PROMINENCE: Final = 0.05
_CENTRAL: Final = (0.3, 0.7)
_TISSUE_PERCENTILE: Final = 10
_TISSUE_SHARE: Final = 0.3


def mirror_mask(image: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Mirror a mask along the columns, or else along the rows; return None if neither works.

    Parameters
    ----------
    image
        The slice (rows, columns), as z-scores.
    mask
        The tumour, of the same shape.
    """
    tissue = image[image > _BACKGROUND]
    least = np.percentile(tissue, _TISSUE_PERCENTILE) if tissue.size else _BACKGROUND
    for picture, tumour, is_turned in ((image, mask, False), (image.T, mask.T, True)):
        middle = find_midline(picture)
        if middle is None:
            continue
        rows, columns = np.nonzero(tumour)
        mirrored = 2 * middle - columns
        inside = (mirrored >= 0) & (mirrored < picture.shape[1])
        other = np.zeros_like(tumour)
        other[rows[inside], mirrored[inside]] = True
        if other.any() and (picture[other] >= least).mean() >= _TISSUE_SHARE:
            return other.T if is_turned else other
    return None


def find_midline(image: NDArray[np.float64]) -> int | None:
    """Return the column of the valley between both breasts, or None if there is no valley."""
    profile = _smooth_profile(image)
    if np.isnan(profile).all():
        return None
    ends = _find_peaks(profile)
    if ends is None:
        return None
    low, high = sorted(ends)
    between = profile[low : high + 1]
    if np.nanmin(between) >= np.nanmean(profile) * (1 - _PROMINENCE):
        return None
    floor, mean = np.nanmin(between), np.nanmean(between)
    valley = np.flatnonzero(np.where(np.isnan(between), floor, between) <= (floor + mean) / 2)
    middle = low + int(np.median(valley))
    first, last = (low + int(share * (high - low)) for share in _CENTRAL)
    return middle if first <= middle <= last else (low + high) // 2


def _smooth_profile(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smoothed mean tissue intensity of each column, NaN where there is no tissue."""
    is_tissue = image > _BACKGROUND
    count = is_tissue.sum(axis=0)
    total = np.where(is_tissue, image, 0.0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(count > 0, total / count, np.nan)
        kernel = np.ones(width := max(3, means.size // _SMOOTHING)) / width
        sums = np.convolve(np.nan_to_num(means), kernel, mode="same")
        shares = np.convolve((~np.isnan(means)).astype(np.float64), kernel, mode="same")
        smooth: NDArray[np.float64] = np.where(shares > 0, sums / shares, np.nan)
    return smooth


def _find_peaks(profile: NDArray[np.float64]) -> tuple[int, int] | None:
    """Return the highest peak near each end of the profile, or else in each half."""
    n = profile.size
    outer, apart = max(1, n // 4), max(3, int(n * _PEAKS_APART))
    heights = np.nan_to_num(profile, nan=-np.inf)
    peaks: list[int] = []
    for index in range(1, n - 1):
        height = heights[index]
        is_peak = height >= heights[index - 1] and height >= heights[index + 1]
        if not is_peak or not height >= np.nanmean(profile) * _LOWEST_PEAK:
            continue
        if peaks and index - peaks[-1] < apart:
            if height > heights[peaks[-1]]:
                peaks[-1] = index
        else:
            peaks.append(index)
    ends: list[int] = []
    for zone, half in (((0, outer), (0, n // 2)), ((n - outer, n), (n // 2, n))):
        near = [p for p in peaks if zone[0] <= p < zone[1]]
        near = near or [p for p in peaks if half[0] <= p < half[1]]
        part = profile[slice(*zone)]
        if not near and np.isnan(part).all():
            return None
        near = near or [zone[0] + int(np.nanargmax(part))]
        ends.append(max(near, key=lambda p: float(heights[p])))
    return ends[0], ends[1]


_RANGE: Final = 5.0
"""Only values from -5 to 5 standard deviations are compared."""
_FEWEST: Final = 2

Image = NDArray[np.float64]


def _image(case: CaseAnswer) -> Image:
    """Return the answer as an image that has the shape of the truth."""
    image, truth = case.answer, case.truth["image"]
    if image.shape[-2:] != truth.shape[-2:]:
        raise ValueError(f"expected an image of shape {truth.shape}, but found {image.shape}")
    if image.ndim != truth.ndim:
        raise NotDefinedError(f"expected an image of shape {truth.shape}, but found {image.shape}")
    return np.asarray(image)


def _tumour(case: CaseAnswer) -> NDArray[np.bool_]:
    mask = case.truth.get("mask")
    if mask is None or not (mask > 0).any():
        raise NoTruthError("the reference has no tumour")
    return np.asarray(mask > 0)


def squared_error(case: CaseAnswer) -> float:
    """Return the mean squared difference over all pixels."""
    return float(np.mean((case.answer - case.truth["image"]) ** 2))


def _worst_error(case: CaseAnswer) -> float:
    """Return the largest possible mean squared error of an image with values from -5 to 5."""
    return float(np.mean((np.abs(case.truth["image"]) + _RANGE) ** 2))


def structural_similarity(case: CaseAnswer, data_range: float = 2 * _RANGE) -> float:
    """Return the mean structural similarity inside the tumour, from the map of the whole image."""
    from skimage import metrics

    similarity: Callable[..., Any] = metrics.structural_similarity
    tumour, truth = _tumour(case), case.truth["image"]
    _, values = similarity(case.answer, truth, data_range=data_range, full=True)
    return float(np.mean(values[tumour]))


def perceptual_distance(case: CaseAnswer) -> float:
    """Return the LPIPS distance of both images, clipped to -5 to 5 and scaled to -1 to 1."""
    network, image = case.model("backbone"), _image(case)
    scaled = [np.clip(one, -_RANGE, _RANGE) / _RANGE for one in (image, case.truth["image"])]
    distance = float(network(*scaled)) if np.isfinite(scaled).all() else np.nan
    if not isfinite(distance):
        raise NotDefinedError("the image has values that are not finite")
    return distance


def _segment(case: CaseAnswer) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the mask that the segmentation model finds in the image, and the tumour mask."""
    segmenter, tumour = case.model("segmenter"), _tumour(case)
    mask = np.asarray(segmenter(case.answer), dtype=bool)
    if mask.shape != tumour.shape or not mask.any():
        raise NotDefinedError("the model finds no tumour in the image")
    return mask, tumour


def segmented_dice(case: CaseAnswer) -> float:
    """Return the Dice of the tumour and the mask that the model finds in the image."""
    mask, tumour = _segment(case)
    return float(2 * np.logical_and(mask, tumour).sum() / (mask.sum() + tumour.sum()))


def segmented_distance(case: CaseAnswer) -> float:
    """Return the 95th percentile, in pixels, of the distances between both masks' borders."""
    from scipy.ndimage import binary_erosion, distance_transform_edt

    distances = []
    for mask, other in (masks := _segment(case), masks[::-1]):
        border = mask & ~binary_erosion(mask)
        distances.append(distance_transform_edt(~other)[border])
    return float(np.percentile(np.concatenate(distances), 95))


def _diagonal(case: CaseAnswer) -> float:
    return hypot(*case.truth["image"].shape[-2:])


def contrast_rows(case: CaseAnswer, whole_image: bool = False) -> Rows:
    """Return rows (1, p of the image) and (0, p of the pre-contrast image), inside the tumour.

    With `whole_image`, the whole image is used if a case has no tumour.
    """
    classify = case.model("contrast")
    try:
        mask = _tumour(case)
    except NoTruthError:
        if not whole_image:
            raise
        mask = np.ones(case.truth["image"].shape, dtype=bool)
    before = case.truth["prior"]
    return np.array([(1.0, classify(case.answer, mask)), (0.0, classify(before, mask))])


def _worst_contrast(case: CaseAnswer, whole_image: bool = False) -> Rows:
    if not whole_image:
        _tumour(case)
    return np.array([(1.0, -1.0), (0.0, 2.0)])


def tumour_rows(case: CaseAnswer) -> Rows:
    """Return rows (1, p of the tumour) and (0, p of its mirror image in the other breast)."""
    classify, mask = case.model("tumour"), _tumour(case)
    if case.answer.shape != mask.shape:
        raise ValueError(f"expected an image of shape {mask.shape}, but found {case.answer.shape}")
    mirrored = mirror_mask(case.answer, mask)
    if mirrored is None or np.array_equal(mirrored, mask):
        raise NotDefinedError("the image has no two breasts with a valley between them")
    image = case.answer
    return np.array([(1.0, classify(image, mask)), (0.0, classify(image, mirrored))])


def _auc_of_pairs(rows: Rows, **_: Any) -> float:
    return auc(rows[:, 0], rows[:, 1]) if len(rows) >= 2 * _FEWEST else np.nan


def radiomics_rows(case: CaseAnswer) -> Rows:
    """Return the radiomics features inside the tumour, of the truth and then of the image."""
    features, tumour = case.model("radiomics"), _tumour(case)
    if not np.isfinite(case.answer).all():
        raise ValueError("the image has values that are not finite")
    return np.concatenate([features(case.truth["image"], tumour), features(_image(case), tumour)])[
        None
    ]


def frechet_distance(rows: Rows) -> float:
    """Return the log of the Fréchet distance between normal distributions fitted to features.

    Features are standardised with the mean and SD of the truth. Source: Konz et al., arXiv
    2412.01496.
    """
    from scipy.linalg import sqrtm

    if len(rows) < _FEWEST:
        return np.nan
    truth, image = np.split(rows, 2, axis=1)
    spread = truth.std(axis=0)
    truth, image = ((one - truth.mean(axis=0)) / np.where(spread, spread, 1) for one in
                    (truth, image))  # fmt: skip
    first, second = (np.atleast_2d(np.cov(one, rowvar=False)) for one in (truth, image))
    shift = truth.mean(axis=0) - image.mean(axis=0)
    root = np.trace(sqrtm(first @ second).real)
    return float(np.log(shift @ shift + np.trace(first) + np.trace(second) - 2 * root))


_IMAGES: Final = AnswerKind.IMAGES
IMAGE_MEASURES: Final = (
    ChallengeMeasure("image.mse", _IMAGES, squared_error, worst=_worst_error),
    ChallengeMeasure("image.lpips", _IMAGES, perceptual_distance, worst=1.0),
    ChallengeMeasure("image.ssim", _IMAGES, structural_similarity, worst=-1.0),
    ChallengeMeasure("image.frd", _IMAGES, radiomics_rows, frechet_distance, is_resampled=False),
    ChallengeMeasure("image.contrast_auc", _IMAGES, contrast_rows, _auc_of_pairs, _worst_contrast),
    ChallengeMeasure("image.tumour_auc", _IMAGES, tumour_rows, _auc_of_pairs, _worst_contrast),
    ChallengeMeasure("image.dice", _IMAGES, segmented_dice, worst=0.0),
    ChallengeMeasure("image.hd95_pixels", _IMAGES, segmented_distance, worst=_diagonal),
)


def _load_threshold(text: str) -> Callable[[Image], NDArray[np.bool_]]:
    cut = float(text)
    return lambda image: image > cut


def _load_mean(_: str) -> Callable[[Image, NDArray[np.bool_]], float]:
    """Return a model that is a logistic function of the mean intensity in a mask.

    For a mask of one pixel or the whole image it returns 0.5, as the official code does, whose
    radiomics fail in these cases.
    """

    def classify(image: Image, mask: NDArray[np.bool_]) -> float:
        has_features = 1 < mask.sum() < mask.size
        mean = np.nan_to_num(image[mask].mean(), posinf=0, neginf=0) if has_features else 0.0
        return float(1 / (1 + np.exp(-mean)))

    return classify


IMAGE_MODELS: Final = (
    ChallengeModel("threshold", _load_threshold),
    ChallengeModel("mean-intensity", _load_mean),
    ChallengeModel("alexnet", load_alexnet),
)
