"""Derives the API's client rules from the configuration."""

from daemon.api.access.client import Client, ClientRule, Right
from daemon.config import Config
from daemon.config.client import ClientSection, group_id, user_id


def client_rules(config: Config) -> tuple[ClientRule, ...]:
    """Returns the rules in the order of the validated configuration. A user who no longer exists matches no peer."""
    return tuple(_rule(each) for each in config.client)


def _rule(section: ClientSection) -> ClientRule:
    client = Client(
        section.client_name,
        None if section.sees_all else frozenset(section.labels),
        frozenset(Right(each) for each in section.rights),
    )
    return ClientRule(
        client,
        section.token_file,
        None if section.user is None else user_id(section.user),
        None if section.group is None else group_id(section.group),
    )
