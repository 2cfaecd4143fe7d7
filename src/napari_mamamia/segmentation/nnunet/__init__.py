"""Run nnU-Net v2 models with exactly the same results as nnU-Net's own command.

`load_nnunet` returns an `engine`, which is loaded once and used for many cases. A case is passed
through `prepare`, the forward pass and `export`; a cascade has two stages. `checkpoint` and
`safetensors` read weights as plain numbers. A rejected checkpoint is opened in a sandbox by
`isolated`; `unpickle` runs inside the sandbox and imports nothing from this package.
"""
