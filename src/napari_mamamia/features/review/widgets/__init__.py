"""Page Review: a study that several people read: reading, adjudicating, leading."""
