"""The breast area of a recipe: the reader's box, the box of the case, or the detected breast."""

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.kinetic.breast import breast_mask
from napari_mamamia.segmentation.model.postprocess import BreastArea, PostKind
from napari_mamamia.segmentation.model.recipe import Recipe


def breast_area(
    case: Case, recipe: Recipe, drawn: Box | None = None
) -> tuple[BreastArea | None, tuple[str, ...]]:
    """Return the breast of a case, and notes on its origin.

    The result is None if the recipe does not need the breast. The reader's box `drawn` has
    precedence. The next choice is the box of the case (`Case.breast_box`), which the challenge
    gives to every submission and the published pipelines use for cropping. Otherwise the breast is
    detected in phase 0, and a note says that this is not the box of the published pipeline. A step
    that needs the outline of the breast always detects it.

    Raises
    ------
    ModelError
        If the breast must be detected and is not.
    """
    if not recipe.needs_breast:
        return None, ()
    if drawn is not None:
        return BreastArea(drawn), ()
    needs_outline = any(step.kind is PostKind.BREAST_MASK for step in recipe.post)
    if case.breast_box is not None and not needs_outline:
        return BreastArea(case.breast_box), ()
    area, notes = find_breast_area(case)
    if needs_outline:
        return area, notes
    note = (
        "the case's patient file gives no usable breast_coordinates: the breast was detected in "
        "phase 0, and a published pipeline may give another mask"
    )
    return area, (*notes, note)


def find_breast_area(case: Case) -> tuple[BreastArea, tuple[str, ...]]:
    """Detect the breast in phase 0, or raise `ModelError`."""
    case.require_phases(1)
    outline = breast_mask(case.signal[0], case.grid)
    around = Box.around(outline.array)
    if around.is_empty:
        raise ModelError(
            f"{case.case_id}: the breast is needed, but none was detected in phase 0; draw a box "
            "around it, give breast_coordinates in the patient file, or choose a recipe that "
            "uses the whole volume"
        )
    return BreastArea(around, outline.array), outline.notes
