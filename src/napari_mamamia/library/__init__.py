"""Services as functions and records for scripts and notebooks (``import napari_mamamia as mm``).

Modules::

    open_data_set(path)  -> DataSet -> Case       data_set, case
    predict, grow        -> Prediction, Mask      predict, grow
    score, score_table   -> Scores -> Comparison  score (inputs), scores (results)
    measure_kinetics     -> Measurements          kinetics
    import_dicom, export -> Imported, Exported    dicom, export
    read_mask, to_nibabel ...                     masks
    make_phantoms        -> DataSet               phantoms

A function checks its arguments (`arguments`) and calls the same service as the window and the
command line. `progress.drive` runs all long work and shows its progress. The returned record holds
the result of the service and makes pandas tables on request. The remedies of a service error are
shown as arguments (`argument_words`).

``napari_mamamia/__init__.py`` lists the public names, which are imported on first use. `metrics`
and `kinetics` are also public and need no service. No other package imports this package, and it
imports no napari, Qt, torch or nibabel.
"""
