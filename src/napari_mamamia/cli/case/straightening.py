"""The command that resamples cases with sheared axes to orthogonal grids."""

from functools import partial

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.printing import finish, run
from napari_mamamia.cli.scripting import report_result, reports_result


@reports_result
def straighten(
    data_set: options.DataSetArgument,
    out: options.OutOption,
    case: options.CaseOption = None,
    columns: options.ColumnsOption = None,
    layout: options.LayoutOption = "",
    patient: options.PatientOption = None,
    visit: options.VisitOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Resample cases with sheared axes to orthogonal grids, in a new data set OUT.

    Example: mamamia straighten DATASET --out STRAIGHT
    """
    from napari_mamamia.services.export.straighten import straighten_data_set

    opened = open_at(data_set, columns, layout, patient, visit)
    existing = options.existing_policy(False, overwrite)
    summary = run(partial(straighten_data_set, opened, out, case_ids=case or (), existing=existing))
    report_result(lambda: summary)
    for one in summary.cases:
        before, after = (" x ".join(map(str, shape)) for shape in (one.shape, one.new_shape))
        print(f"{one.case_id}: {one.lean_degrees:.2f} degrees off; {before} voxels -> {after}")
        for name, old, new in one.masks_mm3:
            print(f"    mask {name}: {old / 1000:.3f} -> {new / 1000:.3f} cc")
    if summary.n_straight:
        typer.echo(
            f"note: {summary.n_straight} cases already have orthogonal axes and were not copied"
        )
    print(f"Data set: {summary.folder}")
    print(
        "Voxels are resampled (phases trilinear, masks nearest neighbour); see "
        "straightened/ID.json for "
        "details."
    )
    finish(summary.failures)
