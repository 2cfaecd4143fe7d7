"""Tables as files: .csv, .xlsx, .ods in and out.

`spreadsheets` opens what others made (`workbook_limits`; `sheet_gaps` finds cells
that only look empty); `tables` and `flat_tables` write ours, without loss.
"""
