"""Read and write tables in the formats .csv, .xlsx, .ods and .parquet.

`table` reads all tables of other software. `spreadsheets` and `text_rows` open these tables within
the limits of `budget`, `headers` finds columns and rows that are not cases, and `cells` interprets
cells. `tables` and `flat_tables` write the tables of this software without loss.
"""
