"""Functions and classes for scripts and notebooks (``import napari_mamamia as mm``).

Modules::

    open_data_set(path)  -> DataSet -> Case       data_set, case
    predict, grow        -> Prediction, Mask      predict, grow
    score, score_table   -> Scores -> Comparison  score (inputs), scores (results)
    measure_kinetics     -> Measurements          kinetics
    import_dicom, export -> Imported, Exported    dicom, export
    read_mask, to_nibabel ...                     masks
    make_phantoms        -> DataSet               phantoms

Each function checks its arguments (`arguments`) and calls the service that the window and the
command line also call. `progress.drive` runs long work and shows its progress. The returned object
holds the result and builds pandas tables on request. If a service raises an error, its remedies are
shown as arguments of the function that was called (`argument_words`).

``napari_mamamia/__init__.py`` lists the public names, which are imported on first use. The modules
`metrics` and `kinetics` are also public; they do not use services. No other package imports this
package, and it does not import napari, Qt, torch or nibabel itself.
"""
