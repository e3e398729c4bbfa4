"""What comparisons of two builds have measured, so that the nights after an upgrade are seen with it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "comparisons",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("site", sa.String, nullable=False, index=True),
        sa.Column("file_system", sa.String, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.Column("results", sa.JSON, nullable=False),
    )
