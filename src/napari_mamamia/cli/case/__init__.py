"""Commands that process the images of cases: register, straighten, kinetics, report."""
