"""What leaves: a bundle of masks, tables, SEG and layouts; and whether it is what it says.

`export` joins it: `plan` refuses early, `case` makes a case whole or not at all through `writer`,
`formats`, `masks`, `labels`, `harmonised` and `seg` are what is written. `verify` holds a
bundle against its manifest, `privacy` searches it for the patient.
"""
