"""Tables as files: .csv, .xlsx, .ods in and out.

`table` is the one reader of what others made: `spreadsheets` and `text_rows` open it within the
`budget`, `cells` says what a cell means, `summary_rows` which row is no case, `sheet_gaps` which
cell only looks empty. `tables` and `flat_tables` write ours, without loss.
"""
