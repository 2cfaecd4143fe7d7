"""The learned brush: a small neural network that corrects a mask, its input and its weights."""
