"""The export format `centroid`: the centre of each mask in RAS mm, one JSON file for each case."""

import json

import numpy as np

from napari_mamamia.services.export.format_spec import CaseWork, CaseWriter, FormatSpec


def write_centroids(work: CaseWork, writer: CaseWriter) -> None:
    """Write ``centroid/ID.json``: by set of masks the centre (x, y, z), null if it is empty."""
    centres = {}
    for mask in work.drawn:
        voxels = np.argwhere(mask.labels > 0)
        xyz = voxels.mean(axis=0)[::-1] if len(voxels) else None
        centres[mask.name] = None if xyz is None else (mask.grid.affine @ [*xyz, 1.0])[:3].tolist()
    path = writer.root / "centroid" / f"{writer.case_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(centres, indent=2) + "\n", encoding="utf-8")
    writer.record(path, "other")


CENTROID = FormatSpec(
    title="Centroids",
    tip="The centre of each mask in mm, as JSON",
    purpose="programs that need one point for each tumour",
    folders=("centroid",),
    describe=lambda _: ("centroid/ID.json",),
    write=write_centroids,
)
