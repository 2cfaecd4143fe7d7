"""Commands on the images of cases: registering, straightening, kinetics, reports."""
