"""Read DICOM files: headers, pixels, and the series that they form.

`files` finds and reads files in threads. `quick` reads plain headers without pydicom, `headers`
reads all others; both return the records of `slices`. `elements` reads single elements, `mosaic`
splits Siemens mosaics, `pixels` reads voxels, `stack` finds the geometry, `clocks` the order in
time. `kinds` derives role, evidence and processing from a header (`roles`); `parts` splits a series
into parts. `facts` is the allow-list of elements that are kept, `persons` finds identifiers of the
patient, `pseudonym` copies an image without them. `io.exam` decides how the images of a study
belong together.
"""
