"""`--mode` and `--set`: the retrieval mode and settings of one command, derived from their declarations."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from daemon.contract.choices import DEEP_SETTINGS, MODES, NO_RETRIEVAL, SETTINGS, Filter, Setting

if TYPE_CHECKING:
    from daemon.contract.base import Request

Command = TypeVar("Command", bound=Callable[..., Any])


_FIELDS = {
    "timeout": "timeout_s",
    "no_update": "update",
    "no_merge": "merge",
    "deep_set": "deep_settings",
    "set": "settings",
}
"""Field of a request for each option that has another name."""


def field_of(option: str) -> str:
    return _FIELDS.get(option, option)


def flag_of(field: str) -> str:
    """Return the option that sets a field of a request."""
    names = {named: option for option, named in _FIELDS.items()}
    return f"--{names.get(field, field).replace('_', '-')}"


class _ModeChoice(click.Choice[str]):
    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        summaries = {
            name: MODES[name].summary if name in MODES else "Answers without retrieval." for name in self.choices
        }
        return [CompletionItem(name, help=said) for name, said in summaries.items() if name.startswith(incomplete)]


def mode_option(command: Command) -> Command:
    """Add the parameter `mode`, the name of a retrieval mode or None."""
    return click.option("--mode", type=_ModeChoice(list(MODES)), help="Retrieval mode. Default: the configured one.")(
        command
    )


def answer_mode_option(command: Command) -> Command:
    """Add `mode_option` with the further value "none", which means an answer without retrieval."""
    return click.option(
        "--mode",
        type=_ModeChoice([*MODES, NO_RETRIEVAL]),
        help=f"Retrieval mode. {NO_RETRIEVAL}: no retrieval; the model answers from its own knowledge.",
    )(command)


def filter_option(command: Command) -> Command:
    """Add the parameter `filter_`, which selects the filter of linked triples, or None."""
    return click.option(
        "--filter",
        "filter_",
        type=click.Choice([each.value for each in Filter]),
        help="What filters the linked triples (recognition memory).",
    )(command)


def settings_option(command: Command) -> Command:
    """Add the parameter `settings`, a mapping that the request contains unchanged."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_read,
        shell_complete=_complete,
        help="Change a setting of [retrieval], such as passage_weight=0.1 or passage_nodes=false. Repeatable.",
    )(command)


def refuse_unread(mode: str | None, settings: Mapping[str, Any], where: str = "") -> None:
    """UsageError for a setting that the mode does not read. The configured mode (None) is not known here."""
    if mode is None or mode == NO_RETRIEVAL:
        return
    if unread := [name for name in settings if name not in MODES[mode].settings]:
        readers = ", ".join(SETTINGS[unread[0]].modes)
        raise click.UsageError(f"{where}{unread[0]} has no effect in {mode}; the modes that read it are {readers}.")


def deep_settings_option(command: Command) -> Command:
    """Add the parameter `deep_settings`, a mapping that the request contains unchanged."""
    return click.option(
        "--deep-set",
        "deep_settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_read_deep,
        shell_complete=_complete_deep,
        help="With --deep: change a setting of [deep], such as n_v=10. Repeatable.",
    )(command)


def _complete_deep(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    keys = ((f"{setting.name}=", setting.meaning) for setting in DEEP_SETTINGS.values())
    return [CompletionItem(key, help=meaning) for key, meaning in keys if key.startswith(incomplete)]


def _complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete `KEY=`, or the values of a setting that has few."""
    found = []
    for setting in SETTINGS.values():
        values: tuple[str, ...] = ("",)
        if "=" in incomplete:
            values = ("true", "false") if setting.kind is bool else setting.choices or values
        pairs = (f"{setting.name}={value}" for value in values)
        found += [CompletionItem(pair, help=setting.meaning) for pair in pairs if pair.startswith(incomplete)]
    return found


def _read(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any]:
    if not pairs:
        return {}
    from daemon.contract.retrieval import RetrievalOverrides

    return _read_pairs(context, parameter, pairs, SETTINGS, RetrievalOverrides)


def _read_deep(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any]:
    if not pairs:
        return {}
    from daemon.contract.answering.deep_settings import DeepOverrides

    return _read_pairs(context, parameter, pairs, DEEP_SETTINGS, DeepOverrides)


def _read_pairs(
    context: click.Context,
    parameter: click.Parameter,
    pairs: tuple[str, ...],
    known: Mapping[str, Setting],
    overrides: "type[Request]",
) -> dict[str, Any]:
    from pydantic import ValidationError

    texts = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key or not value:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE", context, parameter)
        if key not in known:
            raise click.BadParameter(
                f"{key!r} is not a setting; the settings are {', '.join(known)}", context, parameter
            )
        texts[key] = value
    try:
        # Text is converted to numbers and booleans here, by the rules of the daemon.
        return overrides.model_validate_strings(texts).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        message = f"{first['loc'][0]}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise click.BadParameter(message, context, parameter) from None
