"""NnU-Net v2 models, computed exactly as its own command does.

`load` makes an `engine`, kept warm; a case goes through `prepare`, the `engine`'s forward pass (a
fold's network as a function) and `export`; `cascade` is the first stage of one. `checkpoint` and
`safetensors` read weights as plain numbers; what refuses is opened in a closed room (`isolated`,
and `unpickle`, which runs there and imports nothing of ours).
"""
