"""Run by Alembic: migrates on the connection that :mod:`iogauge.history.database` gives, in its transaction."""

from alembic import context

from iogauge.history.database import VERSION_TABLE
from iogauge.history.schema import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSION_TABLE
)
context.run_migrations()
