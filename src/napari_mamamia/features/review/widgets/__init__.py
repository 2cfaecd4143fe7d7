"""The Review page: read, adjudicate, sign and lead a study with several readers."""
