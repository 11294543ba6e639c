"""What the index of each representation of a study costs beside how well it ranks (section 13)."""
