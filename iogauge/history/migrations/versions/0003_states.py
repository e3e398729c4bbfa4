"""What the detector remembers from night to night."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "states",
        sa.Column("site", sa.String, primary_key=True),
        sa.Column("file_system", sa.String, primary_key=True),
        sa.Column("night", sa.Date, nullable=False),
        sa.Column("last_run", sa.Integer, nullable=False),
        sa.Column("basis", sa.String, nullable=False),
        sa.Column("state", sa.JSON, nullable=False),
    )
