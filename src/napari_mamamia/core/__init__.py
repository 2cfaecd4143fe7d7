"""Domain types and vocabulary, which need only numpy and the standard library.

`grid` (`Grid`, the only code that converts axis order or compares grids) and `box`; `case` (`Case`,
`Phase`, `Mask`, `LabelMap`); `cohort`; `records`, table rows that several packages share; `edits`
and `difference`, the edits of a reader; `errors`, all error classes; `progress`, progress reports
of long operations; `provenance`, who or what made a mask. `program` is about the running process:
`child_process`, the only module that starts other processes, and `garbage`, which pauses the
garbage collector.
"""
