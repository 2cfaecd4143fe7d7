"""Metrics of two masks on one grid, as plain functions; undefined values are NaN.

The public functions, such as ``mm.metrics.dice(reference, prediction, grid)``, are in `of_masks`
and are imported on first use. `registry` is the table of all metrics, which defines the columns of
scores and tables and the metrics in the window, the report and the documentation. `nearest`
computes exact distances, and `crop` crops two masks to their common block.
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
        return sorted(__all__)
