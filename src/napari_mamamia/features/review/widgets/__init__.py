"""Page Review: read, adjudicate, sign and lead a study of several readers."""
