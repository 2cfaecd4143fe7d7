"""The learned brush: a small neural network that corrects a mask, with its input and weights."""
