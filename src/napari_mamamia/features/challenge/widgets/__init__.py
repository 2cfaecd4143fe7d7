"""The leaderboard: who leads and how sure, teams, every case of every team; a cell opens it."""
