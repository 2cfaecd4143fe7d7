"""The field that outlines are drawn from: it parts the right voxels, on a smooth way."""

import numpy as np
import pytest
from contourpy import contour_generator
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from napari_mamamia.annotations.outline_field import CHANNELS, LEVEL, channel_of, find_outline_field


def centres_inside(labels: np.ndarray, channel: int, first: int = 0) -> np.ndarray:
    """Return which voxel centres lie inside the line, on the whole slice."""
    inside = np.zeros(labels.shape, bool)
    field = find_outline_field(labels, first)
    if field is not None:
        over = field.values[..., channel] > LEVEL * 255
        for row, column in np.argwhere(over):
            inside[row + field.row, column + field.column] = True
    return inside


@given(
    arrays(np.uint8, (9, 11), elements=st.sampled_from([0, 0, 1, 2, 5, 255])),
    st.sampled_from([0, 1, 5, 7, 255]),
)
def test_the_line_parts_each_label_from_all_other_voxels(labels: np.ndarray, first: int) -> None:
    for channel in range(CHANNELS):
        kept = [label for label in range(1, 256) if channel_of(label, first) == channel]
        own = np.isin(labels, kept)
        assert (centres_inside(labels, channel, first) == own).all()
    if first:
        assert (centres_inside(labels, 0, first) == (labels == first)).all()


def test_an_empty_slice_has_no_field() -> None:
    assert find_outline_field(np.zeros((5, 5), np.uint8)) is None


@pytest.mark.parametrize("lost", ["single", "spicule", "hole", "corner"])
def test_what_a_blur_would_lose_is_kept(lost: str) -> None:
    labels = np.zeros((12, 12), np.uint8)
    if lost == "single":
        labels[5, 5] = 1
    elif lost == "spicule":
        np.fill_diagonal(labels[3:9, 3:9], 1)
    elif lost == "hole":
        labels[3:9, 3:9] = 1
        labels[5, 5] = 0
    else:
        labels[0, 0] = labels[11, 11] = 1
    assert (centres_inside(labels, 0) == (labels > 0)).all()


def test_a_straight_edge_runs_halfway_between_voxels() -> None:
    labels = np.zeros((20, 20), np.uint8)
    labels[:10] = 1
    field = find_outline_field(labels)
    assert field is not None
    column = field.values[:, 10, 0] / 255
    # Rows 9 and 10 of the slice are the last inside and the first outside.
    inside, outside = column[9 - field.row], column[10 - field.row]
    assert (inside - LEVEL) / (inside - outside) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("radius", [2.5, 4.0, 9.3, 25.0])
def test_a_circle_is_drawn_as_a_circle(radius: float) -> None:
    """Contourpy's line of the field lies within a third of a voxel of the true circle, as does no
    staircase (its corners lie off by up to .7)."""
    rows, columns = np.mgrid[:64, :64] - 31.7
    labels = (np.hypot(rows, columns) <= radius).astype(np.uint8)
    field = find_outline_field(labels)
    assert field is not None
    lines = contour_generator(z=field.values[..., 0] / 255).lines(LEVEL)
    assert len(lines) == 1
    x, y = np.asarray(lines[0]).T
    distances = np.hypot(x + field.column - 31.7, y + field.row - 31.7)
    assert np.abs(distances - radius).max() < 0.5
    assert np.sqrt(np.mean((distances - radius) ** 2)) < 0.25
    assert distances.mean() == pytest.approx(radius, abs=0.12)
