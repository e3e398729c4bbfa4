"""One concern a file; each says which attributes a test must have by which phase."""
