"""``import napari_mamamia as mm``: the services as functions and records for scripts and notebooks.

Shape::

    open_data_set(path)  -> DataSet -> Case       data_set, case
    predict, grow        -> Prediction, Mask      predict, grow
    score, score_table   -> Scores -> Comparison  score (what is compared), scores (what came out)
    measure_kinetics     -> Measurements          kinetics
    import_dicom, export -> Imported, Exported    dicom, export
    read_mask, to_nibabel ...                     masks
    make_phantoms        -> DataSet               phantoms

Flow: a function checks what it was given (`arguments`), asks the same service as the window and
the command line, and `progress.drive`, the one place that runs long work, shows how far it is. The
record that comes back holds what the service found and makes pandas tables of it when asked. What a
service advises in options is said as arguments (`argument_words`).

What is public is the list in ``napari_mamamia/__init__.py`` (each name is imported when it is asked
for) and, of the sciences, the doors of `metrics` and `kinetics`, which need no service. Nothing
imports this room; it imports no napari, Qt, torch or nibabel.
"""
