"""Files of any kind, before their format is known.

`foreign` guards every reader: an error of a library about a foreign file becomes one of our errors
that names the file (`reads`, `explained`), and `open_plain` opens it. `save` guards every writer:
either the old file remains or the complete new one exists. Only `own_paths` makes temporary files;
it also removes those of processes that have ended. `json_text` and `zip_files` check the size of
foreign files first; `csv_text` writes no text that a spreadsheet program would run as a formula.
For files that only grow: `append_file`, `checked_lines` (lines with checksums) and `chained_lines`
(a hash chain). `one_writer` locks a file that several programs change. `named_paths` parses
``NAME=PATH``. `sources` lists the files of a case.
"""
