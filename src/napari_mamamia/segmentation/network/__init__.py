"""Single-file networks: TorchScript, torch.export, ONNX, OpenVINO and safetensors.

`engine` is the entry point. `card` and `onnx` read a file's description as data. `script` checks
TorchScript before it is opened, and `exported` reads torch.export files without torch's loader.
"""
