"""The Predict page: models, their inputs and recipes, runs, candidates and uncertainty."""
