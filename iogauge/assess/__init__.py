"""From the history to what is known of a site tonight: the one record that reports, messages and exit codes are made from."""
