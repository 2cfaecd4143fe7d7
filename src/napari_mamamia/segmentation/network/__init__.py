"""Networks in one file: TorchScript, torch.export, ONNX, OpenVINO, safetensors.

`engine` is the entry point; `files`, `shapes` and `onnx` read as data what a file states; `script`
checks TorchScript before it is opened, `exported` reads torch.export without torch's loader.
"""
