"""Federated training, scored: how fast it converges, how long its rounds take, how it aggregates.

A library: no network, no training, no files. `convergence` scores a run, `times` simulates its
rounds, `aggregation` mixes clients' tensors by the published rules. docs/methods/federation.md has
an example of each. Source: FeTS, Zenk et al., Nature Communications 16 (2025) 6274, and
FeTS-AI/Challenge, commit 1c122653 (behaviour and numbers, no code).
"""
