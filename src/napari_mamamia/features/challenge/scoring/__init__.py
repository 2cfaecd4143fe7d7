"""Rankings over sites, federated training, and the pages of a leaderboard."""
