"""The functions and records for scripts and notebooks (``import napari_mamamia as mm``).

Modules::

    open_data_set(path)  -> DataSet -> Case       data_set, case
    predict, grow        -> Prediction, Mask      predict, grow
    score, score_table   -> Scores -> Comparison  score (inputs), scores (results)
    measure_kinetics     -> Measurements          kinetics
    import_dicom, export -> Imported, Exported    dicom, export
    read_mask, to_nibabel ...                     masks
    make_phantoms        -> DataSet               phantoms

Each function checks its arguments (`arguments`) and calls the service that the window and the
command line also call. `progress.drive` runs long work and shows its progress. The returned record
holds the result and builds pandas tables on request. The remedies of a service error are shown as
arguments (`argument_words`).

``napari_mamamia/__init__.py`` lists the public names, which are imported on first use. `metrics`
and `kinetics` are also public; they use no service. No other package imports this package, and it
imports no napari, Qt, torch or nibabel.
"""
