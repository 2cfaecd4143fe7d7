"""Domain types and words: numpy and the standard library only.

`grid` (`Grid`, the only code that converts axis order or compares grids) and `box`; `case` (`Case`,
`Phase`, `Mask`, `LabelMap`); `cohort`; `records`, the rows that several rooms share; `edits` and
`difference`, what a reader did; `errors`, the tree of them; `progress`, how far long work is;
`provenance`, who or what made a mask. `program` is what the running program does to itself: the one
launcher of processes (`child_process`), and no collections of garbage in strokes (`garbage`).
"""
