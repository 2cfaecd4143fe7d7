"""`mamamia kinetics --ftv-from`: FTV under a SEG of UCSF, ours beside theirs."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from napari_mamamia.cli.printing import finish, print_table, run, shown

if TYPE_CHECKING:
    from napari_mamamia.services.batch.output_folder import Existing
    from napari_mamamia.services.case.data_set import OpenDataSet
    from napari_mamamia.services.kinetics.ftv_from import FtvFromRow


def count_from(
    opened: "OpenDataSet", source: Path, out: Path, case: Sequence[str], existing: "Existing"
) -> None:
    """Count FTV under each SEG, print ours beside theirs, and exit with 3 if a SEG failed."""
    from napari_mamamia.services.kinetics.ftv_from import ftv_from_segs

    summary = run(partial(ftv_from_segs, opened, source, out, case_ids=case, existing=existing))
    _print_volumes(summary.rows)
    print(f"Table: {summary.table}")
    finish(summary.failures)


def _print_volumes(rows: "Sequence[FtvFromRow]") -> None:
    heads = ("case", "SEG", "measure", "ours voxels", "ours cc", "UCSF voxels", "UCSF cc")
    cells = (
        (
            row.case_id,
            row.seg,
            row.measure,
            f"{row.ours_voxels:.0f}",
            f"{row.ours_cc:.3f}",
            f"{row.theirs_voxels:.0f}",
            f"{row.theirs_cc:.3f}",
            shown(row.different_voxels, 0),
        )
        for row in rows
    )
    print_table("FTV, ours and UCSF's", (*heads, "different"), cells, is_folded=True)
    for row in rows:
        if row.measure == "pe":
            print(f"{row.case_id}: {row.phases} · {row.ftv_thresholds}")
            if row.remark:
                print(f"{row.case_id}: {row.remark}")
