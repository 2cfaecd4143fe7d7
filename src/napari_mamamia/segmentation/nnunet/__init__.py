"""nnU-Net v2 models, with exactly the same result as nnU-Net's own command.

`load_nnunet` returns an `engine` that stays loaded; a case goes through `prepare`, the forward pass
of the `engine` (a fold's network as a function) and `export`; `cascade` adds a first stage.
`checkpoint` and `safetensors` read weights as plain numbers; a refused checkpoint is opened in a
sandbox (`isolated`, and `unpickle`, which runs there and imports nothing of ours).
"""
