"""The metric `volume_error`: how much larger the prediction is than the reference, in percent."""

import math

from napari_mamamia.metrics.compared import ComparedMasks
from napari_mamamia.metrics.registry import Better, MetricSpec


def volume_error(pair: ComparedMasks) -> float:
    """Return the volume error in percent; nan if the reference is empty."""
    n_reference = int(pair.reference.sum())
    if n_reference == 0:
        return math.nan
    return 100.0 * (int(pair.prediction.sum()) - n_reference) / n_reference


VOLUME_ERROR = MetricSpec(
    "volume_error",
    "Volume error",
    "%",
    Better.NEITHER,
    1,
    "volume of the prediction minus that of the reference, in percent of the reference",
    "100 · (|P| - |R|) / |R|",
    "geometry",
    "by hand",
    of_pair=volume_error,
)
