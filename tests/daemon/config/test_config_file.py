"""The commented `config.toml` in the repository root: complete, correct, and usable unchanged."""

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from daemon.config import Config, load_config
from daemon.config.client import ClientSection
from daemon.sources.folder import FOLDER
from daemon.sources.registry import SOURCE_KINDS

FILE = Path(__file__).parents[3] / "config.toml"
SETTING = re.compile(r"#(\[\[?[\w.]+\]\]?|\w+ = .*)$")
REQUIRED = {("folder", "path"), ("kafka", "topics"), ("client", "user")}
CHECKOUT = {("store", "path"), ("api", "socket")}
"""Set to places in the checkout; the comment next to them names the default."""


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "drive").mkdir()
    return tmp_path


def uncommented() -> str:
    return "\n".join(SETTING.sub(r"\1", line) for line in FILE.read_text().splitlines())


def test_config_file_follows_drive_and_keeps_data_under_var(checkout):
    (checkout / "config.toml").write_bytes(FILE.read_bytes())
    config = load_config(checkout / "config.toml", {"HOME": "/h"})
    assert [folder.path for folder in config.tables(FOLDER)] == [checkout / "drive"]
    assert config.store.path == checkout / "var" / "store"
    assert config.api.socket == checkout / "var" / "hippod.sock"


def test_config_file_changes_only_the_default_paths(checkout):
    written = tomllib.loads(FILE.read_text())
    set_here = {
        (section, key) for section, table in written.items() for key in (table[0] if isinstance(table, list) else table)
    }
    assert set_here == CHECKOUT | {("folder", "path")}


def test_every_commented_setting_is_the_default(checkout):
    (checkout / "config.toml").write_text(uncommented())
    (checkout / "empty.toml").write_text(
        '[[folder]]\npath = "drive"\n[[kafka]]\ntopics = ["articles"]\n[[client]]\nuser = "root"\n'
    )
    said = load_config(checkout / "config.toml", {"HOME": "/h"}).model_dump()
    default = load_config(checkout / "empty.toml", {"HOME": "/h"}).model_dump()
    for section, key in CHECKOUT:
        said[section].pop(key)
        default[section].pop(key)
    assert said == default


def model_of(annotation: object) -> type[BaseModel]:
    assert isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation


def test_config_file_lists_every_setting(checkout):
    written = tomllib.loads(uncommented())
    models = {name: field.annotation for name, field in Config.model_fields.items()} | {
        kind.table: kind.section for kind in SOURCE_KINDS
    }
    models["client"] = ClientSection
    assert list(written) == list(models)
    for section, model in models.items():
        table = written[section][0] if isinstance(written[section], list) else written[section]
        assert set(table) == set(model_of(model).model_fields), section


def test_default_paths_in_comments_of_the_config_file_are_correct():
    text = FILE.read_text()
    assert f"the default is {model_of(Config.model_fields['store'].annotation).model_fields['path'].default}" in text
    assert f"default socket is {model_of(Config.model_fields['api'].annotation).model_fields['socket'].default}" in text
