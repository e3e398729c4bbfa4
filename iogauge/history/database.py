"""Opening a history: where it is, whether this version of iogauge may read and write it, and one writer at a time."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json
from sqlalchemy import (
    Connection,
    Engine,
    Table,
    column,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
    table,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from iogauge import nightly
from iogauge.errors import InputError
from iogauge.history import HISTORY_VARIABLE
from iogauge.history.schema import metadata

#: Where Alembic keeps the revision; a database may hold another program's tables beside ours.
VERSION_TABLE = "iogauge_version"

_MIGRATIONS = Path(__file__).parent / "migrations"

#: How long a writer waits for another one.
WAIT_SECONDS = 60

_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}

#: Any number, the same for all writers.
_ADVISORY_LOCK = 0x696F6761756765

_WRITES = "iogauge_writes"


def default_location() -> str:
    """``IOGAUGE_HISTORY``, else ``history.sqlite`` beside the nights."""
    return os.environ.get(HISTORY_VARIABLE) or str(nightly.home() / "history.sqlite")


class History:
    """An open history. ``location`` is a path (SQLite) or a URL (``postgresql://...``); default: :func:`default_location`.

    What goes wrong in the database, now or later, is told as :class:`InputError` with its name, and has changed nothing.
    """

    def __init__(self, location: str | None = None) -> None:
        url = _url(location or default_location())
        self.file = Path(url.database) if url.drivername == "sqlite" and url.database else None
        self.name = str(self.file) if self.file else url.render_as_string(hide_password=True)
        try:
            self._engine = create_engine(
                url, poolclass=NullPool, connect_args=_options(url), json_serializer=_json, json_deserializer=from_json
            )
        except (ModuleNotFoundError, NoSuchModuleError) as error:
            raise InputError(f"{error}; for PostgreSQL: pip install 'iogauge[postgresql]'", file=self.name) from error
        if self.file is not None:
            _explicit_transactions(self._engine)

    def exists(self) -> bool:
        """Was anything ever written? A server's database is taken to exist."""
        return self.file is None or self.file.exists()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the history, and changes nothing."""
        if not self.exists():
            raise InputError("no history yet; iogauge history ingest makes one", file=self.name)
        with self._told(), self._engine.connect() as connection, connection.begin():
            self._check(connection)
            revision = _revision(connection)
            if revision != _head():
                older = f"is of an older iogauge (revision {revision})" if revision else "is empty"
                raise InputError(f"{older}; iogauge history upgrade brings it up to date", file=self.name)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction: all of it or nothing is kept, and no two run at once. Migrates before."""
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        with self._told(), self._engine.connect() as connection:
            connection = connection.execution_options(**{_WRITES: True})
            with connection.begin():
                if self.file is None:
                    connection.execute(text(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'"))
                    connection.execute(select(func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
                self._check(connection)
                if _revision(connection) != _head():
                    _migrate(connection)
                yield connection

    def upgrade(self) -> tuple[str | None, str]:
        """Migrate to the newest tables; the revisions before and after."""
        before = None
        if self.exists():
            with self._told(), self._engine.connect() as connection:
                before = _revision(connection)
        with self.writing():
            return before, _head()

    def _check(self, connection: Connection) -> None:
        revision = _revision(connection)
        if revision is None:
            alike = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
            if alike:
                raise InputError(f"is no history of iogauge, but has a table {alike[0]!r}", file=self.name)
        elif revision not in revisions():
            raise InputError(
                f"was written by a newer iogauge (revision {revision}, this one knows {_head()}); use that one. "
                f"Nothing was changed",
                file=self.name,
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            said = " ".join(str(error.orig).split())
            raise InputError(f"the database says: {said}. Nothing was changed", file=self.name) from error


def next_id(connection: Connection, table: Table) -> int:
    """The first free number for a row of ``table``; there is one writer at a time."""
    return (connection.execute(select(func.max(table.c.id))).scalar() or 0) + 1


def add_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add ``rows``, which have the same columns; by PostgreSQL's COPY there: a statement a row takes its server many times as
    long. Raises what inserting them would."""
    if not rows:
        return
    if connection.dialect.name != "postgresql":
        connection.execute(insert(table), rows)
        return
    names, quote = list(rows[0]), connection.dialect.identifier_preparer.quote
    driver = connection.dialect.loaded_dbapi
    processors = [
        table.c[name].type.dialect_impl(connection.dialect).bind_processor(connection.dialect) for name in names
    ]
    bound = [(name, processor or _as_it_is) for name, processor in zip(names, processors, strict=True)]
    statement = f"COPY {quote(table.name)} ({', '.join(map(quote, names))}) FROM STDIN"
    try:
        with connection.connection.cursor() as cursor, cursor.copy(statement) as copy:  # type: ignore[attr-defined]
            for row in rows:
                copy.write_row([process(row[name]) for name, process in bound])
    except driver.Error as error:
        raise DBAPIError.instance(statement, None, error, driver.Error, dialect=connection.dialect) from error


def _as_it_is(value: Any) -> Any:
    return value


def _url(location: str) -> URL:
    if "://" not in location:
        return URL.create("sqlite", database=str(Path(location).expanduser()))
    try:
        url = make_url(location)
    except ArgumentError as error:
        raise InputError(f"{error}; a path or postgresql://USER@HOST/DATABASE is expected", key="history") from error
    driver = _DRIVERS.get(url.drivername.partition("+")[0])
    if driver is None or (driver == "sqlite" and url.database in (None, "", ":memory:")):
        raise InputError(
            f"{url.render_as_string(hide_password=True)!r}; a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE "
            f"is expected",
            key="history",
        )
    return url.set(drivername=driver)


def _json(value: Any) -> str:
    """Pydantic's writer: numbers are most of what is stored, and it is many times as fast with them as Python's."""
    return to_json(value).decode()


def _options(url: URL) -> dict[str, Any]:
    return {"timeout" if url.drivername == "sqlite" else "connect_timeout": WAIT_SECONDS}


def _explicit_transactions(engine: Engine) -> None:
    """SQLite's driver would begin a transaction late and end it early; a writer has to have its lock from the start."""

    @event.listens_for(engine, "connect")
    def connected(connection, record) -> None:  # type: ignore[no-untyped-def]
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.execute(text("BEGIN IMMEDIATE" if writes else "BEGIN"))


def _migrate(connection: Connection) -> None:
    from alembic import (
        command,  # takes as long to load as all else here, and only a history that is not up to date needs it
    )
    from alembic.config import Config

    configuration = Config(attributes={"connection": connection})
    configuration.set_main_option("script_location", str(_MIGRATIONS))
    configuration.set_main_option("path_separator", "os")
    command.upgrade(configuration, "head")


@functools.cache
def revisions() -> tuple[str, ...]:
    """Of all migrations, the newest first: their files are named by number."""
    return tuple(sorted((path.name.partition("_")[0] for path in _MIGRATIONS.glob("versions/0*_*.py")), reverse=True))


def _head() -> str:
    return revisions()[0]


def _revision(connection: Connection) -> str | None:
    """As Alembic keeps it."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
