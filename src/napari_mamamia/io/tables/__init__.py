"""Read and write tables: .csv, .xlsx, .ods, .parquet.

`table` reads all tables of other software: `spreadsheets` and `text_rows` open them within the
`budget`, `cells` interprets cells, `summary_rows` finds rows that are not cases, `sheet_gaps` cells
that only look empty. `tables` and `flat_tables` write our tables without loss.
"""
