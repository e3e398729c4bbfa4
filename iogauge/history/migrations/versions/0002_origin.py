"""Where a run comes from: ReFrame, or an output that somebody kept; and the Darshan summaries in place of a switch.

Before, ``cases.darshan`` held whether the case was asked to run under Darshan, which says nothing of what was seen.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("origin", sa.String, nullable=False, server_default="reframe"))
    op.add_column("runs", sa.Column("sha256", sa.String))
    cases = sa.table("cases", sa.column("darshan", sa.JSON(none_as_null=True)))
    op.execute(cases.update().values(darshan=sa.null()))
