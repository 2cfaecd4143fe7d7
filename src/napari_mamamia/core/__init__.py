"""Domain types and vocabulary: numpy and the standard library only.

`grid` (`Grid`, the only code that converts axis order or compares grids) and `box`; `case` (`Case`,
`Phase`, `Mask`, `LabelMap`); `cohort`; `records`, rows that several packages share; `edits` and
`difference`, the edits of a reader; `errors`, all error classes; `progress`, reports of long work;
`provenance`, who or what made a mask. `program` concerns the running process: the only module that
starts other processes (`child_process`), and pauses of the garbage collector (`garbage`).
"""
