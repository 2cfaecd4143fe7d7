"""Convert prompts and boxes between the patient frame and the axis order of the file."""

from collections.abc import Sequence

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import DisplayFrame
from napari_mamamia.segmentation.model.segmenter import BoxPrompt, Click, Prompt


def clicked_voxel(
    case: Case, frame: DisplayFrame, prompt: Prompt | None
) -> tuple[int, int, int] | None:
    """Return the clicked voxel in the patient frame, or None if the prompt is not a click.

    Parameters
    ----------
    case
        The case with its phases.
    frame
        The patient frame.
    prompt
        A click or a box, or None.

    Raises
    ------
    CaseError
        If the click is outside the image.
    """
    if not isinstance(prompt, Click):
        return None
    shape = case.grid.shape
    if not all(0 <= i < n for i, n in zip(prompt.voxel, shape, strict=True)):
        raise CaseError(
            f"expected the click to be inside {case.case_id} (shape {shape}), but it is at voxel "
            f"{prompt.voxel} (z, y, x); click inside the image"
        )
    a, b, c = frame.point_to_display(prompt.voxel, shape)
    return (int(a), int(b), int(c))


def prompt_box(case: Case, frame: DisplayFrame, prompt: Prompt, click_region_mm: float) -> Box:
    """Return the box that a prompt selects in the patient frame, cropped to the image.

    Raises
    ------
    CaseError
        If a box prompt is empty or outside the image.
    """
    shape = case.grid.shape
    if isinstance(prompt, Click):
        z, y, x = (int(i) for i in prompt.voxel)
        reach = [int(click_region_mm / s) + 1 for s in case.grid.spacing_mm]
        return box_to_frame(Box((z, y, x), (z + 1, y + 1, x + 1)).grown(reach, shape), frame, shape)
    box = prompt.box
    if box.is_empty or any(b > n for b, n in zip(box.stop, shape, strict=True)):
        raise CaseError(
            f"expected the box {box.start} to {box.stop} (z, y, x) to contain voxels of "
            f"{case.case_id} (shape {shape}), but it contains none; draw it inside the image"
        )
    return box_to_frame(box, frame, shape)


def box_to_frame(box: Box, frame: DisplayFrame, shape: Sequence[int]) -> Box:
    """Return a box given in (z, y, x) array indices as a box in the patient frame.

    Parameters
    ----------
    box
        The box to convert.
    frame
        The patient frame.
    shape
        Size of the volume in voxels.
    """
    return _span_box(
        frame.point_to_display(box.start, shape),
        frame.point_to_display([b - 1 for b in box.stop], shape),
    )


def box_from_frame(box: Box, frame: DisplayFrame, shape: Sequence[int]) -> Box:
    """Return a box in the patient frame as a box in (z, y, x) array indices.

    Parameters
    ----------
    box
        The box to convert.
    frame
        The patient frame.
    shape
        Size of the volume in voxels.
    """
    return _span_box(
        frame.point_from_display(box.start, shape),
        frame.point_from_display([b - 1 for b in box.stop], shape),
    )


def described(prompt: Prompt | None) -> str:
    """Return the prompt as provenance text in voxels (z, y, x), or "none" if there is no prompt."""
    if isinstance(prompt, Click):
        return f"click at {tuple(int(i) for i in prompt.voxel)}"
    if isinstance(prompt, BoxPrompt):
        return f"box from {prompt.box.start} to {prompt.box.stop}"
    return "none"


def _span_box(one: Sequence[float], other: Sequence[float]) -> Box:
    a, b, c = (int(min(i, j)) for i, j in zip(one, other, strict=True))
    d, e, f = (int(max(i, j)) + 1 for i, j in zip(one, other, strict=True))
    return Box((a, b, c), (d, e, f))
