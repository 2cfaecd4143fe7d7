"""``import napari_mamamia as mm``: the services as functions and records for scripts and notebooks.

Modules::

    open_data_set(path)  -> DataSet -> Case       data_set, case
    predict, grow        -> Prediction, Mask      predict, grow
    score, score_table   -> Scores -> Comparison  score (inputs), scores (results)
    measure_kinetics     -> Measurements          kinetics
    import_dicom, export -> Imported, Exported    dicom, export
    read_mask, to_nibabel ...                     masks
    make_phantoms        -> DataSet               phantoms

A function checks its arguments (`arguments`) and calls the same service as the window and the
command line; `progress.drive`, which runs all long work, shows the progress. The returned record
holds the result of the service and makes pandas tables on request. Remedies of a service are shown
as arguments (`argument_words`).

Public names are listed in ``napari_mamamia/__init__.py`` (each is imported on first use); `metrics`
and `kinetics` are public too and need no service. No other package imports this one; it imports no
napari, Qt, torch or nibabel.
"""
