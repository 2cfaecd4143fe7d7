"""The files of a data set on disk: phases, masks and patient information.

`volumes` reads and writes all volume files. `io.layouts` finds the cases. `imported_case` writes a
case completely or not at all. `bundle`, `label_map`, `moved_info` and `export_layouts` read and
write the files of an export; the other modules read files next to the images.
"""
