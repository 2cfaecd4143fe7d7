"""The files of a data set on disk: phases, masks and patient info.

`volumes` reads and writes all volume files. `io.layouts` finds the cases.
`imported_case` writes a case completely or not at all. `bundle`, `label_map`, `moved_info` and
`export_layouts` are the files of an export; `challenge_info` selects the facts about a patient that
a submission may know.
"""
