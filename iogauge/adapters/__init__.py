"""One module a benchmark: its output in, measurements out, or a refusal with the reason."""
