"""Commands on the images of cases: registration, straightening, kinetics, reports."""
