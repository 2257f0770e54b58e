"""Checks the options of a `[[kafka]]` section without connecting to a broker."""

import logging
import ssl
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.net.sasl import SASL_MECHANISMS

from consumers.kafka.settings import RESERVED_OPTIONS, KafkaSettings, consumer_config, producer_config, with_tuples

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_VERSION_FOR_CHECKS = (2, 3)
"""An explicit API version, so that kafka-python's constructors do not query a broker for its version."""

_UNUSED_ADDRESS = "127.0.0.1:1"
"""Broker address used while the options are checked. Nothing listens there."""

OptionProblem = tuple[str, str]
"""(name of an invalid option, predicate of a sentence that describes the fault)."""


def option_problems(settings: KafkaSettings, sends: bool) -> list[OptionProblem]:
    """Returns the options that hippod or kafka-python would refuse, each with the fault.

    `sends`: the settings are also used to send messages, so options of a producer are allowed.
    """
    client_options = dict(KafkaConsumer.DEFAULT_CONFIG)
    if sends:
        client_options = {**KafkaProducer.DEFAULT_CONFIG, **client_options}
    found = list(_unknown_names(settings.options, client_options)) or list(
        _wrong_types(settings.options, client_options)
    )
    if not found:
        found = [*_security_problems(with_tuples(settings.options))]
    return found or list(_refused_by_client(settings, sends))


def _unknown_names(options: Mapping[str, Any], client_options: Mapping[str, Any]) -> Iterator[OptionProblem]:
    for name in options:
        if name in RESERVED_OPTIONS:
            yield name, f"must not be set: {RESERVED_OPTIONS[name]}"
        elif name not in client_options:
            near = get_close_matches(name, [each for each in client_options if each not in RESERVED_OPTIONS], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield name, f"is not an option of kafka-python{hint}"


def _wrong_types(options: Mapping[str, Any], client_options: Mapping[str, Any]) -> Iterator[OptionProblem]:
    for name, value in options.items():
        default = client_options[name]
        if name == "api_version":
            if not (isinstance(value, list) and len(value) >= 2 and all(type(part) is int for part in value)):
                yield name, "must be a version as an array, such as [2, 3]"
        elif isinstance(default, bool):
            if not isinstance(value, bool):
                yield name, "must be true or false"
        elif isinstance(default, int | float):
            if isinstance(value, bool) or not isinstance(value, int | float):
                yield name, f"must be a number, such as {default}"
            elif value < 0 and name != "acks":
                yield name, f"must not be negative; kafka-python's default is {default}"
        elif isinstance(default, str) and not isinstance(value, str):
            yield name, f'must be text, such as "{default}"'


def _security_problems(options: Mapping[str, Any]) -> Iterator[OptionProblem]:
    """Yields mistakes that kafka-python would find only when it connects."""
    protocol = options.get("security_protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        yield "security_protocol", f"must be one of {', '.join(_PROTOCOLS)}"
        return
    if protocol.startswith("SASL"):
        yield from _sasl_problems(options)
    if protocol.endswith("SSL"):
        yield from _tls_problems(options)


def _sasl_problems(options: Mapping[str, Any]) -> Iterator[OptionProblem]:
    name = str(options.get("sasl_mechanism"))
    if name not in SASL_MECHANISMS:
        yield "sasl_mechanism", f"must be one of {', '.join(sorted(SASL_MECHANISMS))}"
        return
    config = {**KafkaConsumer.DEFAULT_CONFIG, **options}
    for key in ("sasl_plain_username", "sasl_plain_password"):
        if (name == "PLAIN" or name.startswith("SCRAM")) and not isinstance(config[key], str):
            yield key, f"must be set, as text: sasl_mechanism {name} needs it"
            return
    try:
        SASL_MECHANISMS[name](host="localhost", **config)
    except Exception as error:  # noqa: BLE001 - any error of a mechanism means that it is unusable
        yield "sasl_mechanism", f"cannot be used: {error or type(error).__name__}"


def _tls_problems(options: Mapping[str, Any]) -> Iterator[OptionProblem]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    loads: dict[str, Callable[[str], None]] = {
        "ssl_cafile": lambda path: context.load_verify_locations(path),
        "ssl_certfile": lambda path: context.load_cert_chain(
            path, options.get("ssl_keyfile"), options.get("ssl_password")
        ),
        "ssl_crlfile": lambda path: context.load_verify_locations(path),
        "ssl_ciphers": lambda text: context.set_ciphers(text),
    }
    for name, load in loads.items():
        if options.get(name) is not None:
            try:
                load(options[name])
            except (OSError, TypeError, ValueError) as error:  # SSLError is an OSError
                yield name, f"cannot be used: {getattr(error, 'strerror', None) or error}"


def _refused_by_client(settings: KafkaSettings, sends: bool) -> Iterator[OptionProblem]:
    """Lets kafka-python check all options. Finds the invalid option by leaving out one option at a time."""
    reason = _refusal(settings.options, settings, sends)
    if reason is None:
        return
    named = [name for name in settings.options if name in reason]
    cured = [
        name
        for name in settings.options
        if _refusal({key: value for key, value in settings.options.items() if key != name}, settings, sends) is None
    ]
    yield ", ".join(cured or named or settings.options), f"is refused by kafka-python: {reason}"


def _refusal(options: Mapping[str, Any], settings: KafkaSettings, sends: bool) -> str | None:
    checked = KafkaSettings(settings.brokers, settings.topics, settings.group, options=options)
    version = {
        "api_version": with_tuples(options).get("api_version") or _VERSION_FOR_CHECKS,
        "bootstrap_servers": _UNUSED_ADDRESS,
    }
    client = logging.getLogger("kafka")
    level = client.level
    client.setLevel(logging.CRITICAL + 1)
    try:
        KafkaConsumer(**{**consumer_config(checked, KafkaConsumer.DEFAULT_CONFIG), **version}).close()
        if sends and any(name not in KafkaConsumer.DEFAULT_CONFIG for name in options):
            KafkaProducer(**{**producer_config(checked, KafkaProducer.DEFAULT_CONFIG), **version}).close(timeout=1)
    except (KafkaError, ValueError, TypeError, AssertionError, OSError) as error:
        return " ".join(str(error).split()).removeprefix("KafkaConfigurationError: ") or type(error).__name__
    finally:
        client.setLevel(level)
    return None
