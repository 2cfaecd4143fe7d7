"""Read and write files of any kind, before their format is known.

`foreign` guards every reader: it converts a library's error about a file to an error of this
software that names the file (`reads`, `explained`), and `open_plain` opens such files. `save`
guards every writer: either the old file remains, or the complete new file exists. Only `own_paths`
makes temporary files, and it removes temporary files of processes that have ended. `json_text` and
`zip_files` check the size of files first; `csv_text` prevents text from running as a formula in a
spreadsheet program. `append_file` writes files that only grow, with a checksum per line or as a
hash chain. `one_writer` locks a file that several programs change. `named_paths` parses
``NAME=PATH``. `sources` lists the files of a case.
"""
