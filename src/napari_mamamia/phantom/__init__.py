"""Synthetic breast DCE-MRI cases whose true masks and curves are known."""

from napari_mamamia.phantom.body.tissue import Tissue
from napari_mamamia.phantom.data_set import PhantomMix, write_data_set
from napari_mamamia.phantom.phantom_case import (
    Phantom,
    TissueCurve,
    make_phantom,
    make_phantom_job,
)
from napari_mamamia.phantom.spec import (
    Breasts,
    CurveType,
    PhantomSpec,
    Side,
    TumourKind,
    TumourSpec,
)

__all__ = [
    "Breasts",
    "CurveType",
    "Phantom",
    "PhantomMix",
    "PhantomSpec",
    "Side",
    "Tissue",
    "TissueCurve",
    "TumourKind",
    "TumourSpec",
    "make_phantom",
    "make_phantom_job",
    "write_data_set",
]
