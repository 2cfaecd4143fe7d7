"""Page Predict: models, their inputs and recipes, runs, candidates, uncertainty."""
