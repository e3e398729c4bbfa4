"""The tables of the history, as the newest migration leaves them.

Times are Unix seconds (UTC) in every table; a *night* is the date on which it begins, noon to noon in the local time of the
machine that ran it. A column of type JSON with times of repeats holds one number a repeat, in their order.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

#: What :data:`runs` come from: a run of ReFrame, or an output that somebody kept (:mod:`iogauge.history.importing`).
REFRAME, IMPORTED = "reframe", "import"

#: One run of ReFrame: ``session`` is its own name for it; ``content`` is a digest of what was measured, by which the same
#: measurements are known under another name. ``notes`` are what was odd (clocks, cases kept as invalid). ``origin`` is
#: REFRAME or IMPORTED; of what was imported, ``report`` is the file's name and ``sha256`` its digest.
runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("session", String, nullable=False, unique=True),
    Column("content", String, nullable=False, unique=True),
    Column("site", String, nullable=False),
    Column("suite", String, nullable=False),
    Column("night", Date, nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("finished", BigInteger, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("cause", String, nullable=False),
    Column("selected", Integer, nullable=False),
    Column("host", String, nullable=False),
    Column("reframe", String, nullable=False),
    Column("machine", JSON(none_as_null=True)),
    Column("report", String, nullable=False),
    Column("notes", JSON, nullable=False),
    Column("ingested", BigInteger, nullable=False),
    Column("origin", String, nullable=False, server_default=REFRAME),
    Column("sha256", String),
)

#: Versions that the numbers depend on, each combination once.
software = Table(
    "software",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("digest", String, nullable=False, unique=True),
    Column("versions", JSON, nullable=False),
)

#: ``hosts``: host to its number of ranks; ``cores``: host to the cores of each of its ranks.
placements = Table(
    "placements",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("digest", String, nullable=False, unique=True),
    Column("hosts", JSON, nullable=False),
    Column("cores", JSON, nullable=False),
)

#: One job of a run, those included that are invalid or were skipped: they have ``reasons`` and no measurement. ``darshan`` is
#: the summary of its log (:class:`iogauge.darshan.summary.Summary`). What was imported has no placement: it is not known.
cases = Table(
    "cases",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("run_id", Integer, ForeignKey(runs.c.id), nullable=False, index=True),
    Column("name", String, nullable=False),
    Column("file_system", String, nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("ranks_per_node", Integer, nullable=False),
    Column("partition", String, nullable=False),
    Column("environ", String, nullable=False),
    Column("verdict", String, nullable=False),
    Column("reasons", JSON, nullable=False),
    Column("placement_id", Integer, ForeignKey(placements.c.id)),
    Column("layout", String, nullable=False),
    Column("seconds", Float),
    Column("stage", String, nullable=False),
    Column("darshan", JSON(none_as_null=True)),
)

#: What is compared over the years (:mod:`iogauge.series`): one key with one configuration in one unit.
series = Table(
    "series",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("site", String, nullable=False),
    Column("key", String, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("unit", String, nullable=False),
    Column("file_system", String, nullable=False, index=True),
    UniqueConstraint("site", "key", "fingerprint", "unit"),
)

#: One series in one job. A repeat's rate is ``amount`` (MiB, or operations) over its seconds; ``observed`` is the best of
#: those over ``total_seconds``. ``cached``: it was a read from the page cache. Kept in the order of series and time, so
#: that the years of one series lie together on disk.
measurements = Table(
    "measurements",
    metadata,
    Column("series_id", Integer, ForeignKey(series.c.id), primary_key=True),
    Column("started", BigInteger, primary_key=True, autoincrement=False),
    Column("case_id", Integer, ForeignKey(cases.c.id), primary_key=True),
    Column("run_id", Integer, ForeignKey(runs.c.id), nullable=False),
    Column("software_id", Integer, ForeignKey(software.c.id), nullable=False),
    Column("role", String, nullable=False),
    Column("verdict", String, nullable=False),
    Column("cached", Boolean, nullable=False),
    Column("amount", Float, nullable=False),
    Column("observed", Float, nullable=False),
    Column("total_seconds", JSON, nullable=False),
    sqlite_with_rowid=False,
)

#: What explains a measurement: the other times of each repeat, and the ratios to the case's baselines with every pair.
evidence = Table(
    "evidence",
    metadata,
    Column("series_id", Integer, primary_key=True, autoincrement=False),
    Column("started", BigInteger, primary_key=True, autoincrement=False),
    Column("case_id", Integer, primary_key=True, autoincrement=False),
    Column("open_seconds", JSON, nullable=False),
    Column("transfer_seconds", JSON, nullable=False),
    Column("flush_seconds", JSON, nullable=False),
    Column("close_seconds", JSON, nullable=False),
    Column("prepare_seconds", JSON, nullable=False),
    Column("least_total_seconds", JSON, nullable=False),
    Column("cached_fraction", JSON(none_as_null=True)),
    Column("ratios", JSON, nullable=False),
    ForeignKeyConstraint(
        ["series_id", "started", "case_id"],
        ["measurements.series_id", "measurements.started", "measurements.case_id"],
        onupdate="CASCADE",
        name="fk_evidence_measurements",
    ),
    sqlite_with_rowid=False,
)

#: What an operator said of the series whose keys fit ``target`` (a key; ``*`` stands for anything): ``ack`` (seen),
#: ``bless`` (the level is right from ``since`` on), ``mute`` (no alarm before ``until``). ``unsay`` takes the action with the
#: number ``target`` back, or the maintenance window ``m`` and its number: both stay.
actions = Table(
    "actions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("site", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("target", String, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("until", BigInteger),
    Column("at", BigInteger, nullable=False),
    Column("who", String, nullable=False),
    Column("why", String, nullable=False),
)

#: What happened at a site: ``maintenance`` from ``begins`` to ``ends`` (of one file system, or of all), and ``rename``, by
#: which what was called ``file_system`` before ``begins`` is called ``new_name``.
marks = Table(
    "marks",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("site", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("file_system", String),
    Column("new_name", String),
    Column("begins", BigInteger, nullable=False),
    Column("ends", BigInteger),
    Column("at", BigInteger, nullable=False),
    Column("who", String, nullable=False),
    Column("why", String, nullable=False),
)

#: What the detector remembers of a file system's series up to ``night`` (:mod:`iogauge.assess.tonight`), so that another night
#: is judged without those before. It can be made anew at any time. ``basis`` is a digest of what it follows from beside the
#: nights of the runs up to number ``last_run``.
states = Table(
    "states",
    metadata,
    Column("site", String, primary_key=True),
    Column("file_system", String, primary_key=True),
    Column("night", Date, nullable=False),
    Column("last_run", Integer, nullable=False),
    Column("basis", String, nullable=False),
    Column("state", JSON, nullable=False),
)
