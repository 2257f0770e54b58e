"""Loads a file and the environment into a validated `Config`, or reports all errors in them.

`HIPPOD_<SECTION>__<KEY>` overrides a key. pydantic-settings could read these variables, but it ignores unknown names, cannot
say which variable a bad value came from, and would control the file's search order.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from daemon.config.config import Config
from daemon.config.cross_checks import disagreements
from daemon.config.messages import TABLE_LISTS, field_at, sentence, unknown_key, unknown_section
from daemon.config.model_sections import key_problem
from daemon.config_types.values import Context
from daemon.contract.paths import candidates
from memory.encoder.registry import ENCODER_BACKENDS
from memory.openie.registry import OPENIE_BACKENDS

ENVIRONMENT_PREFIX = "HIPPOD_"
_LARGEST_FILE = 1024 * 1024
CREDENTIALS = "CREDENTIALS_DIRECTORY"
"""Environment variable with systemd's directory of credentials."""


class ConfigError(Exception):
    """The configuration cannot be used. `problems`: one sentence for each error."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(_one_line(problem) for problem in problems)
        super().__init__("\n".join(self.problems))


class NoConfigFile(ConfigError):
    """There is no configuration file at the usual places."""


def _one_line(text: str) -> str:
    """Escapes control characters and undisplayable characters, because values and names are untrusted."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def load_config(
    path: Path | str | None = None, environ: Mapping[str, str] | None = None, *, read_secrets: bool = True
) -> Config:
    """Loads `path`, or the first file of the search order. Raises ConfigError with all errors.

    Without `read_secrets`, files of tokens and keys need not be readable, and `$CREDENTIALS_DIRECTORY` need not be set.
    """
    environ = os.environ if environ is None else environ
    if not read_secrets:
        environ = {CREDENTIALS: "/run/credentials", **environ}
    file = _find(environ) if path is None else _named(Path(path), "--config")
    values = _parse(_read(file), file)
    overriding, sources, problems = overrides(environ)
    for section, keys in overriding.items():
        table = values.setdefault(section, {})
        if isinstance(table, dict):
            table.update(keys)
    for section, field in Config.model_fields.items():
        if field.default_factory is not None:  # An empty section, because defaults are resolved only by validation.
            values.setdefault(section, {})
    config = None
    base = (file.resolve() if ".." in file.parts else file.absolute()).parent
    try:
        config = Config.model_validate(values, context=Context(base, environ, read_secrets))
    except ValidationError as error:
        problems += [sentence(each, str(file), sources) for each in error.errors(include_url=False)]
    else:
        key_problems = _key_variable(config, environ) if read_secrets else []
        problems += [f"{file}: {each}" for each in [*disagreements(config), *key_problems]]
    if config is None or problems:
        raise ConfigError(problems)
    config._file = base / file.name
    return config


def _key_variable(config: Config, environ: Mapping[str, str]) -> list[str]:
    named = {"llm": config.llm.api_key_env, "llm.judge": config.llm.judge.api_key_env}
    return [
        f"{section}.api_key_env names ${name}, which is not set; export it for hippod, or use {section}.api_key_file"
        for section, name in named.items()
        if name is not None and not environ.get(name)
    ]


def _named(path: Path, by: str) -> Path:
    if _exists(path, by) or path.is_symlink():
        return path
    raise ConfigError([f"{path}: the file, which {by} names, does not exist; write the path of an existing file"])


def _exists(path: Path, by: str) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ConfigError(
            [f"{path}, which {by} names, cannot be accessed ({error.strerror}); check the modes of its folders"]
        ) from None
    return True


def _find(environ: Mapping[str, str]) -> Path:
    try:
        places = candidates(environ)
    except (ValueError, RuntimeError) as error:
        raise ConfigError([f"no configuration: the search needs {error}; name a file with --config"]) from None
    for place, by in places:
        if by == "$HIPPOD_CONFIG":
            return _named(place, by)
        if _exists(place, by):
            return place
    looked = ", ".join(str(place) for place, _ in places)
    raise NoConfigFile(
        [f"no configuration: $HIPPOD_CONFIG is not set and there is no {looked}; write one, or name one with --config"]
    )


def _read(file: Path) -> str:
    if file.is_dir():
        raise ConfigError([f"{file}: a directory; name the file in it, such as {file / 'config.toml'}"])
    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError([f"{file}: cannot be read ({error.strerror}); check its owner and mode"]) from None
    if len(content) > _LARGEST_FILE:
        raise ConfigError([f"{file}: larger than {_LARGEST_FILE} bytes, so it is not a configuration"])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError([f"{file}: line {line} is not UTF-8; save the file as UTF-8"]) from None


def _parse(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError([f"{file}: not TOML: nested too deeply"]) from None
    except ValueError as error:  # TOMLDecodeError, or Python's refusal of a number with thousands of digits.
        reason = str(error)
        if "(at line" not in reason:
            line = text.rstrip("\n").count("\n") + 1
            column = len(text.rstrip("\n").rpartition("\n")[2]) + 1
            reason = f"{reason.removesuffix(' (at end of document)')} (at line {line}, column {column}, the file's end)"
        raise ConfigError([f"{file}: not TOML: {reason}; text values need quotes"]) from None


def unsupported(config: Config, *, read_secrets: bool = True) -> list[str]:
    """Returns one sentence for each setting that this machine cannot support: key, value, and what to do instead."""
    problems = []
    backend = OPENIE_BACKENDS[config.openie.backend]
    if backend.package is not None and find_spec(backend.package) is None:
        problems.append(f'openie.backend = "{backend.name}": {backend.install_text}')
    encoder = config.encoder
    if missing := ENCODER_BACKENDS[encoder.backend].missing_package(encoder.model, encoder.device):
        problems.append(f'encoder.backend = "{encoder.backend}", encoder.model = "{encoder.model}": {missing}')
    if read_secrets and (problem := key_problem(config.llm)):
        problems.append(problem)
    return [f"{config.file or 'configuration'}: {problem}" for problem in problems]


def overrides(environ: Mapping[str, str]) -> tuple[dict[str, dict[str, Any]], dict[str, str], list[str]]:
    """Returns (values by section and key, name of the variable by dotted key, errors in the variables' names)."""
    values: dict[str, dict[str, Any]] = {}
    sources: dict[str, str] = {}
    problems: list[str] = []
    for name in sorted(environ):
        if not name.startswith(ENVIRONMENT_PREFIX):
            continue
        section, separator, key = name.removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
        if not separator:
            problems += _single_underscore(name, section)
        elif section in TABLE_LISTS:
            problems.append(f"environment: ${name}: lists of tables are written in the file, as [[{section}]]")
        elif section not in Config.model_fields:
            problems.append(f"environment: ${name}: {section} is not a section{unknown_section(section)}")
        else:
            model, field = field_at([section, key])
            if field is None:
                problems.append(f"environment: ${name}: {key} is not a setting{unknown_key(section, key, model)}")
                continue
            values.setdefault(section, {})[key] = _value(environ[name], field.annotation)
            sources[f"{section}.{key}"] = name
    return values, sources, problems


def _single_underscore(name: str, rest: str) -> list[str]:
    """Returns errors for names that would be settings if written with two underscores. Ignores all other names, which belong to
    other programs."""
    section, _, key = rest.partition("_")
    if section in Config.model_fields and key and field_at([section, key])[1] is not None:
        correct = f"{ENVIRONMENT_PREFIX}{section.upper()}__{key.upper()}"
        return [f"environment: ${name} sets nothing; write {correct}, with two underscores"]
    return []


def _value(text: str, annotation: Any) -> Any:
    """Returns the value in a variable's text: the text itself for a text setting, else the text parsed as TOML (numbers,
    booleans, lists)."""
    if annotation in (int, float, bool) or (get_args(annotation) and text.lstrip().startswith("[")):
        try:
            parsed = tomllib.loads(f"value = {text}")
        except (ValueError, RecursionError):
            return text
        return parsed["value"] if len(parsed) == 1 else text
    return text
