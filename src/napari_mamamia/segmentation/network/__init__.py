"""Networks in one file: TorchScript, torch.export, ONNX, OpenVINO, safetensors.

`engine` joins it; `files`, `shapes` and `onnx` say what a file tells of itself, read as data;
`script` looks at TorchScript before it is opened, `exported` at torch.export, without torch's
loader.
"""
