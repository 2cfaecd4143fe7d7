"""Plain functions of two masks and a grid; nan where a value is undefined.

``mm.metrics.dice(reference, prediction, grid)`` and the others by name are in `of_masks`: this
package's public door, imported when asked for. `registry` is the list of metrics as data, of which
scores, tables, window, report and docs are made.
`nearest` holds the exact distances, `crop` the joint block.
"""

from napari_mamamia.core.program.lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from napari_mamamia.metrics.of_masks import (
        any_overlap_lesion_counts as any_overlap_lesion_counts,
    )
    from napari_mamamia.metrics.of_masks import assd_mm as assd_mm
    from napari_mamamia.metrics.of_masks import dice as dice
    from napari_mamamia.metrics.of_masks import hausdorff95_mm as hausdorff95_mm
    from napari_mamamia.metrics.of_masks import hausdorff95_voxels as hausdorff95_voxels
    from napari_mamamia.metrics.of_masks import hausdorff_mm as hausdorff_mm
    from napari_mamamia.metrics.of_masks import iou as iou
    from napari_mamamia.metrics.of_masks import lesion_counts as lesion_counts
    from napari_mamamia.metrics.of_masks import longest_diameter_mm as longest_diameter_mm
    from napari_mamamia.metrics.of_masks import measure as measure
    from napari_mamamia.metrics.of_masks import nsd as nsd
    from napari_mamamia.metrics.of_masks import volume_mm3 as volume_mm3

__all__ = [
    "any_overlap_lesion_counts",
    "assd_mm",
    "dice",
    "hausdorff95_mm",
    "hausdorff95_voxels",
    "hausdorff_mm",
    "iou",
    "lesion_counts",
    "longest_diameter_mm",
    "measure",
    "nsd",
    "volume_mm3",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, {"of_masks": tuple(__all__)})

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
