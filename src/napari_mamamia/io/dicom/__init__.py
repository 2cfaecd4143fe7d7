"""DICOM files as they are: found, read, and what a single image or series shows.

`files` finds and reads in threads; `quick` reads plain headers without pydicom, `headers` the rest;
both make the records of `slices`. `elements` holds single elements, `headers` (frames too) and
`mosaic` images with many planes, `pixels` the voxels, `stack` the geometry, `clocks` the order in
time, `times` dates and times. `kinds` turns a header into role, evidence and processing (`roles`,
`words`), `parts` a series into parts. `facts` is the allow-list of what is kept; `persons` what
tells the patient; `pseudonym` an image without its person. What the images of a study are to each
other is decided in `io.exam`.
"""
