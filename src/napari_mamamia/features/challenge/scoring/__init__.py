"""Rankings by definition and over sites, aggregates of sites, and leaderboard pages."""
