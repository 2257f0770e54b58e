"""The clients of the configuration, as the API tells them apart."""

from daemon.api.access.client import Client, ClientRule, Right
from daemon.config import Config
from daemon.config.client import ClientSection, group_id, user_id


def client_rules(config: Config) -> tuple[ClientRule, ...]:
    """In the order of the configuration, which has been checked. A user who is gone since is nobody."""
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
