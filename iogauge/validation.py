"""From what people write (YAML, Python configurations) to models, with file, line, key and what is allowed in errors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from iogauge.errors import InputError

Location = tuple[str | int, ...]
Locate = Callable[[Location], int | None]
Model = TypeVar("Model", bound=BaseModel)


def read_yaml(path: Path) -> tuple[Any, Locate]:
    """The document, and a function from a key's location to its line (1-based). Raises :class:`InputError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from error
    try:
        document = YAML(typ="rt").load(text)
    except DuplicateKeyError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        problem = str(error.problem).splitlines()[0]
        raise InputError(f"{problem}; a key may stand once", file=path, line=line) from error
    except MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        raise InputError(f"not YAML: {error.problem}", file=path, line=line) from error
    except (YAMLError, ValueError) as error:
        raise InputError(f"not YAML: {error}", file=path) from error

    def locate(location: Location) -> int | None:
        line, node = None, document
        for part in location:
            if isinstance(node, Mapping) and part in node:
                line = node.lc.key(part)[0] + 1  # type: ignore[attr-defined]
                node = node[part]
            elif isinstance(node, list) and isinstance(part, int) and part < len(node):
                line = node.lc.item(part)[0] + 1  # type: ignore[attr-defined]
                node = node[part]
        return line

    return document, locate


def python_locator(path: Path | None) -> Locate:
    """A function from nested dictionary keys in a Python file to the line of the innermost that is found.

    A value that is the name of a variable is looked up where the file assigns it. Of a list of dictionaries with names, as
    ReFrame's environments are, the name leads to the one.
    """
    try:
        tree = None if path is None else ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        tree = None

    named = {
        target.id: statement.value
        for statement in (tree.body if tree else ())
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }

    def entries(node: ast.AST) -> Iterator[tuple[Any, int, ast.AST]]:
        for inner in ast.walk(named.get(node.id, node) if isinstance(node, ast.Name) else node):
            if isinstance(inner, ast.Dict):
                for key, value in zip(inner.keys, inner.values, strict=True):
                    if isinstance(key, ast.Constant):
                        yield key.value, key.lineno, value
                        if key.value == "name" and isinstance(value, ast.Constant):
                            yield value.value, key.lineno, inner

    def locate(location: Location) -> int | None:
        line: int | None = None
        node: ast.AST | None = tree
        for part in location:
            found = None if node is None else next((e for e in entries(node) if e[0] == part), None)
            if found is not None:
                line, node = found[1], found[2]
        return line

    return locate


def validate(
    model: type[Model],
    value: Any,
    *,
    file: Path | None = None,
    locate: Locate = lambda location: None,
    prefix: Location = (),
) -> Model:
    """``value`` as a ``model``. Raises :class:`InputError` for the first thing wrong; ``prefix`` leads to it in the file."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # A misspelt key makes another one missing: it is the mistake.
        first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        location = prefix + tuple(part for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = f"unknown key; allowed: {', '.join(_allowed(model, first['loc'][:-1]))}"
        elif first["type"] == "missing":
            message = "missing; it is required"
        elif not isinstance(first["input"], Mapping):
            message = f"{message}, not {first['input']!r}"
        key = ".".join(str(part) for part in location)
        raise InputError(message, file=file, line=locate(location), key=key or None) from error


def _allowed(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys of the model that stands at ``location`` below ``model``."""
    for part in location:
        field = next((f for name, f in model.model_fields.items() if part in (name, f.alias)), None)
        inner = None if field is None else _model_in(field.annotation)
        model = inner or model
    return sorted(field.alias or name for name, field in model.model_fields.items())


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((m for m in map(_model_in, get_args(annotation)) if m is not None), None)


def read_record(model: type[Model], path: Path, what: str) -> Model:
    """A record that was kept as JSON; ``what`` it is, for the message. Raises :class:`InputError` for what is not one."""
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or None
        raise InputError(f"no record of {what}: {first['msg']}", file=path, key=key) from error
