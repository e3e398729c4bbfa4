"""The first tables. A migration is not changed once it is released: it says what was, schema.py what is."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("session", sa.String, nullable=False),
        sa.Column("content", sa.String, nullable=False),
        sa.Column("site", sa.String, nullable=False),
        sa.Column("suite", sa.String, nullable=False),
        sa.Column("night", sa.Date, nullable=False),
        sa.Column("started", sa.BigInteger, nullable=False),
        sa.Column("finished", sa.BigInteger, nullable=False),
        sa.Column("complete", sa.Boolean, nullable=False),
        sa.Column("cause", sa.String, nullable=False),
        sa.Column("selected", sa.Integer, nullable=False),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("reframe", sa.String, nullable=False),
        sa.Column("machine", sa.JSON),
        sa.Column("report", sa.String, nullable=False),
        sa.Column("notes", sa.JSON, nullable=False),
        sa.Column("ingested", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("session", name="uq_runs_session"),
        sa.UniqueConstraint("content", name="uq_runs_content"),
    )
    op.create_table(
        "software",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.UniqueConstraint("digest", name="uq_software_digest"),
    )
    op.create_table(
        "placements",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("hosts", sa.JSON, nullable=False),
        sa.Column("cores", sa.JSON, nullable=False),
        sa.UniqueConstraint("digest", name="uq_placements_digest"),
    )
    op.create_table(
        "cases",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id", name="fk_cases_run_id"), nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("file_system", sa.String, nullable=False),
        sa.Column("nodes", sa.Integer, nullable=False),
        sa.Column("ranks_per_node", sa.Integer, nullable=False),
        sa.Column("partition", sa.String, nullable=False),
        sa.Column("environ", sa.String, nullable=False),
        sa.Column("verdict", sa.String, nullable=False),
        sa.Column("reasons", sa.JSON, nullable=False),
        sa.Column("placement_id", sa.Integer, sa.ForeignKey("placements.id", name="fk_cases_placement_id")),
        sa.Column("layout", sa.String, nullable=False),
        sa.Column("seconds", sa.Float),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("darshan", sa.JSON),
    )
    op.create_index("ix_cases_run_id", "cases", ["run_id"])
    op.create_table(
        "series",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("site", sa.String, nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.Column("unit", sa.String, nullable=False),
        sa.Column("file_system", sa.String, nullable=False),
        sa.UniqueConstraint("site", "key", "fingerprint", "unit", name="uq_series_site"),
    )
    op.create_index("ix_series_file_system", "series", ["file_system"])
    op.create_table(
        "measurements",
        sa.Column(
            "series_id", sa.Integer, sa.ForeignKey("series.id", name="fk_measurements_series_id"), primary_key=True
        ),
        sa.Column("started", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("case_id", sa.Integer, sa.ForeignKey("cases.id", name="fk_measurements_case_id"), primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id", name="fk_measurements_run_id"), nullable=False),
        sa.Column(
            "software_id", sa.Integer, sa.ForeignKey("software.id", name="fk_measurements_software_id"), nullable=False
        ),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("verdict", sa.String, nullable=False),
        sa.Column("cached", sa.Boolean, nullable=False),
        sa.Column("amount", sa.Float, nullable=False),
        sa.Column("observed", sa.Float, nullable=False),
        sa.Column("total_seconds", sa.JSON, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "evidence",
        sa.Column("series_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("started", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("case_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("open_seconds", sa.JSON, nullable=False),
        sa.Column("transfer_seconds", sa.JSON, nullable=False),
        sa.Column("flush_seconds", sa.JSON, nullable=False),
        sa.Column("close_seconds", sa.JSON, nullable=False),
        sa.Column("prepare_seconds", sa.JSON, nullable=False),
        sa.Column("least_total_seconds", sa.JSON, nullable=False),
        sa.Column("cached_fraction", sa.JSON),
        sa.Column("ratios", sa.JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["series_id", "started", "case_id"],
            ["measurements.series_id", "measurements.started", "measurements.case_id"],
            name="fk_evidence_measurements",
            onupdate="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "actions",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("site", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("target", sa.String, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("until", sa.BigInteger),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("why", sa.String, nullable=False),
    )
    op.create_table(
        "marks",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("site", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("file_system", sa.String),
        sa.Column("new_name", sa.String),
        sa.Column("begins", sa.BigInteger, nullable=False),
        sa.Column("ends", sa.BigInteger),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("why", sa.String, nullable=False),
    )
