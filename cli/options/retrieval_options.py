"""`--mode` and `--set`: the retrieval mode and settings of one command, derived from their declarations."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from daemon.contract.choices import DEEP_SETTINGS, MODES, NO_RETRIEVAL, SETTINGS, Filter, Setting

Command = TypeVar("Command", bound=Callable[..., Any])


_FIELDS = {
    "filter_": "filter",
    "timeout": "timeout_s",
    "after_timeout": "after_timeout_s",
    "no_update": "update",
    "no_merge": "merge",
    "deep_set": "deep_settings",
    "set": "settings",
}
"""Field of a request by option, if their names differ."""


def request_fields(chosen: Mapping[str, Any], **names: str) -> dict[str, Any]:
    """Converts the given options to fields of a request. `names`: further names of fields by option, in addition to
    `_FIELDS`."""
    known = _FIELDS | names
    given = {name: value for name, value in chosen.items() if value is not None and value is not False and value != {}}
    return {known.get(name, name): not value if name.startswith("no_") else value for name, value in given.items()}


def flag_of(field: str) -> str:
    """Returns the option that sets a field of a request."""
    names = {named: option for option, named in _FIELDS.items()}
    return f"--{names.get(field, field).rstrip('_').replace('_', '-')}"


class _ModeChoice(click.Choice[str]):
    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        summaries = {
            name: MODES[name].summary if name in MODES else "Answers without retrieval." for name in self.choices
        }
        return [
            CompletionItem(name, help=summary) for name, summary in summaries.items() if name.startswith(incomplete)
        ]


mode_option = click.option("--mode", type=_ModeChoice(list(MODES)), help="Retrieval mode. Default: the configured one.")
answer_mode_option = click.option(
    "--mode",
    type=_ModeChoice([*MODES, NO_RETRIEVAL]),
    help=f"Retrieval mode. {NO_RETRIEVAL}: no retrieval; the model answers from its own knowledge.",
)
filter_option = click.option(
    "--filter",
    "filter_",
    type=click.Choice([each.value for each in Filter]),
    help="Whether a model filters the linked triples (recognition memory).",
)


def _pairs_option(flag: str, name: str, known: Mapping[str, Setting], help: str) -> Callable[[Command], Command]:
    """Returns an option of KEY=VALUE pairs; the request contains the mapping unchanged."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Completes `KEY=`, or the values of a setting that has few values."""
        found = []
        for setting in known.values():
            values: tuple[str, ...] = ("",)
            if "=" in incomplete:
                values = ("true", "false") if setting.kind is bool else setting.choices or values
            pairs = (f"{setting.name}={value}" for value in values)
            found += [CompletionItem(pair, help=setting.meaning) for pair in pairs if pair.startswith(incomplete)]
        return found

    def read(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any]:
        texts = {}
        for pair in pairs:
            key, equals, value = (part.strip() for part in pair.partition("="))
            if not equals or not key or not value:
                raise click.BadParameter(f"{pair!r} is not KEY=VALUE", context, parameter)
            if key not in known:
                message = f"{key!r} is not a setting; the settings are {', '.join(known)}"
                raise click.BadParameter(message, context, parameter)
            texts[key] = value
        try:
            return typed_fields({name: texts}).get(name, {}) if texts else {}
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None

    return click.option(
        flag, name, multiple=True, metavar="KEY=VALUE", callback=read, shell_complete=complete, help=help
    )


settings_option = _pairs_option(
    "--set",
    "settings",
    SETTINGS,
    "Change a setting of [retrieval], such as passage_weight=0.1 or passage_nodes=false. Repeatable.",
)
"""Adds the parameter `settings`, a mapping."""
deep_settings_option = _pairs_option(
    "--deep-set", "deep_settings", DEEP_SETTINGS, "With --deep: change a setting of [deep], such as n_v=10. Repeatable."
)
"""Adds the parameter `deep_settings`, a mapping."""


def typed_fields(texts: Mapping[str, Any]) -> dict[str, Any]:
    """Converts fields of a question from text to numbers and booleans, by the daemon's rules. Raises ValueError, naming the
    field, for a value that the daemon refuses."""
    from pydantic import ValidationError  # loaded only if there are values to convert

    from daemon.contract.answering.ask import AskRequest

    try:
        request = AskRequest.model_validate_strings({"question": "?", **texts})
    except ValidationError as error:
        first = error.errors()[0]
        where = f"{first['loc'][-1]}: " if first["loc"] else ""
        raise ValueError(f"{where}{first['msg'][:1].lower()}{first['msg'][1:]}") from None
    named = request.model_dump(mode="json", exclude_unset=True, exclude_none=True, exclude={"question"})
    return {key: value for key, value in named.items() if value != {}}


def refuse_settings_without_effect(mode: str | None, settings: Mapping[str, Any], where: str = "") -> None:
    """Raises UsageError for a setting that has no effect in the mode. None is the configured mode, which is not known here."""
    if mode is None or mode == NO_RETRIEVAL:
        return
    if ineffective := [name for name in settings if name not in MODES[mode].settings]:
        readers = ", ".join(SETTINGS[ineffective[0]].modes)
        raise click.UsageError(
            f"{where}{ineffective[0]} has no effect in {mode}; the modes that read it are {readers}."
        )
