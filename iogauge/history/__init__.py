"""The history: what all nights measured, in one database (SQLite by default, PostgreSQL by URL).

Run reports go in (:mod:`iogauge.history.ingest`), whole and once; the nights of each series come out
(:mod:`iogauge.history.reading`), and so do tables (:mod:`iogauge.history.export`). What operators say of a series stands
beside it (:mod:`iogauge.history.operators`).
"""

#: The environment variable that names the history, if no option does: a path (SQLite) or a URL.
HISTORY_VARIABLE = "IOGAUGE_HISTORY"
