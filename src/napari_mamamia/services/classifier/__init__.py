"""Score classifiers, fit stacks, audit and split tables; services of the commands."""
