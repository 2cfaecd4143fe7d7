"""Common parts of all models: the `Segmenter` protocol, card, recipe, settings, tiles, plan.

`card` describes a model on the disk, `planner` its time and memory (pure), `recipe` and
`recipe_input` the steps before a network, `postprocess` those after it, `device` where it runs,
`openvino` compiles it for the CPU. The readers of nnU-Net's plans are here, because networks
in one file use them too.
"""
