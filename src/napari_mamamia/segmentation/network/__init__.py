"""Networks in one file: TorchScript, torch.export, ONNX, OpenVINO, safetensors.

`engine` is the entry point; `files`, `shapes` and `onnx` read a file's description as data;
`script` checks TorchScript before it is opened, `exported` reads torch.export without torch's
loader.
"""
