"""The Leaderboard page: the leader, the teams, and every case of every team."""
