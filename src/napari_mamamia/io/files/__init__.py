"""Files of any kind, before their format is known.

`foreign` is the door of every reader: what a foreign file makes of a library becomes one error of
ours that names the file (`reads`, `explained`), and `open_plain` opens it. `save` is the door of
every writer: the old file or the whole new one. `own_paths` alone makes temporary files and sweeps
what ended processes left. `json_text` and `zip_files` measure what others made before it is taken;
`csv_text` writes no text that a spreadsheet program would run. A file that only grows:
`append_file`, with `checked_lines` (lines that know damage) and `chained_lines` (a hash chain).
`one_writer` locks a file that several change. `named_paths` reads ``NAME=PATH``.
`sources` says where a case's files are.
"""
