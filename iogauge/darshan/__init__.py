"""What Darshan saw of a run: read from its log (log), diagnosed in words (rules), held against the benchmark (witness)."""
