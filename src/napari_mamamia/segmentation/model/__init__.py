"""Code shared by all models: the `Segmenter` protocol, card, recipe, settings, tiles and plan.

`card` describes a model on disk, and `planner` estimates its time and memory. `recipe` and
`recipe_input` define the steps before a network, `postprocess` the steps after it. `device` chooses
the device, and `openvino` compiles a network for the CPU. nnU-Net's plans are read in this package,
because networks in a single file also use them.
"""
