"""Score federated training: convergence, round times, and aggregation rules.

These functions use no network and no files, and train nothing. `convergence` scores a run, `times`
simulates its rounds, and `aggregation` combines clients' tensors by the published rules.
docs/methods/federation.md has examples. Source: FeTS, Zenk et al., Nature Communications 16 (2025)
6274, and FeTS-AI/Challenge, commit 1c122653 (behaviour and numbers, no code).
"""
