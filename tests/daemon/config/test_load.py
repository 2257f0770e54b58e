"""The configuration: allowed values, search order of files, and messages about errors."""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.config import Config, ConfigError, load_config, render, unsupported
from daemon.config_types.path_validators import read_token
from daemon.config_types.values import _seconds, _size, size_text
from daemon.contract.durations import duration_text
from daemon.main import main
from daemon.runtime.reload import diff_reload
from daemon.sources.folder import FOLDER
from daemon.sources.kafka.declaration import KAFKA
from tests.daemon.config.test_config_file import model_of


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a configuration, with a `drive` next to it, and returns its path."""
    (tmp_path / "drive").mkdir()

    def write(text: str, name: str = "config.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def problems(path: Path | None, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ or {"HOME": "/nowhere"})
    return list(caught.value.problems)


def test_an_empty_file_is_a_configuration_of_defaults(write):
    config = load_config(write(""), {"HOME": "/home/ada", "XDG_RUNTIME_DIR": "/run/user/7"})
    assert config.store.path == Path("/home/ada/.local/share/hippod/store")
    assert config.api.socket == Path("/run/user/7/hippod.sock")
    assert config.api.mode_bits == 0o660
    assert config.tables(FOLDER) == config.tables(KAFKA) == ()
    assert not config.llm.configured
    assert unsupported(config) == []


def test_paths_start_from_the_file_and_expand_home_and_variables(write, tmp_path):
    path = write('store.path = "~/s"\napi.socket = "${RUN}/x.sock"\n[[folder]]\npath = "./drive"\n')
    config = load_config(path, {"HOME": "/home/ada", "RUN": "/run/there"})
    assert config.store.path == Path("/home/ada/s")
    assert config.api.socket == Path("/run/there/x.sock")
    assert config.tables(FOLDER)[0].path == tmp_path / "drive"
    assert config.file == path


def test_a_relative_configuration_file_gives_absolute_paths(write, tmp_path, monkeypatch):
    write('[[folder]]\npath = "drive"\n')
    monkeypatch.chdir(tmp_path / "drive")
    config = load_config("../config.toml", {"HOME": "/home/ada"})
    assert config.tables(FOLDER)[0].path == (tmp_path / "drive").resolve()


def test_durations_and_sizes_accept_units(write):
    config = load_config(
        write('[schedule]\ncompact = "1h30m"\nsnapshot = 90\nrescan = "off"\n[api]\nrequest_bytes = "2 MiB"\n'), {}
    )
    assert (config.schedule.compact, config.schedule.snapshot, config.schedule.rescan) == (5400, 90, 0)
    assert config.api.request_bytes == 2 * 1024 * 1024


def test_tcp_address_is_split_into_host_and_port_and_needs_a_token_file(write, tmp_path):
    (tmp_path / "token").write_text("s3cret-token\n")
    config = load_config(write('[api]\ntcp = "[::1]:7411"\ntoken_file = "token"\n'), {"HOME": "/h"})
    assert config.api.tcp_address == ("::1", 7411)
    assert config.api.token_file is not None
    assert read_token(config.api.token_file) == "s3cret-token"
    [problem] = problems(write('[api]\ntcp = "127.0.0.1:7411"\n'))
    assert "config.toml: api.token_file is not set; must be set" in problem
    assert "(umask 077; openssl rand -hex 32 > token)" in problem


# --- which file


def test_configuration_file_is_chosen_by_argument_then_variable_then_users_file(write, tmp_path):
    named = write("graph.synonym_max = 1\n", "named.toml")
    users = tmp_path / "xdg" / "hippod" / "config.toml"
    users.parent.mkdir(parents=True)
    users.write_text("graph.synonym_max = 2\n")
    environ = {"HOME": "/h", "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert load_config(None, environ).graph.synonym_max == 2
    assert load_config(None, environ | {"HIPPOD_CONFIG": str(named)}).graph.synonym_max == 1
    assert load_config(users, environ | {"HIPPOD_CONFIG": str(named)}).graph.synonym_max == 2


def test_missing_configuration_error_lists_the_searched_paths(tmp_path):
    [problem] = problems(None, {"HOME": str(tmp_path)})
    assert f"{tmp_path}/.config/hippod/config.toml" in problem
    assert "/etc/hippod/config.toml" in problem
    assert "--config" in problem


def test_missing_file_given_by_variable_or_option_is_an_error(tmp_path):
    [problem] = problems(None, {"HOME": "/h", "HIPPOD_CONFIG": str(tmp_path / "gone.toml")})
    assert "gone.toml" in problem
    assert "$HIPPOD_CONFIG" in problem
    [problem] = problems(tmp_path / "gone.toml")
    assert "--config" in problem


def test_unreadable_file_is_an_error_with_line_and_column(write, tmp_path):
    assert "a directory" in problems(tmp_path)[0]
    (tmp_path / "latin.toml").write_bytes(b"# fine\n# caf\xe9\n")
    assert "line 2 is not UTF-8" in problems(tmp_path / "latin.toml")[0]
    assert "line 2, column 8" in problems(write("[store]\npath = x\n"))[0]
    assert "line 2, column" in problems(write('[store]\npath = """x'))[0]
    assert "too deeply" in problems(write("x = " + "[" * 5000))[0]


# --- mistakes

MISTAKES = [
    ('[store]\npth = "x"', 'store.pth = "x"', "did you mean path?"),
    ('[stor]\npath = "x"', "[stor] is not a section", "did you mean store?"),
    ("[store]\ndamping = 0.5", "store.damping = 0.5", "belongs in [retrieval]"),
    ('path = "x"', 'path = "x" is outside every section', "[store]"),
    ("[store]\npath = 3", "store.path = 3", "a path in quotes"),
    ('[store]\npath = "$NOWHERE/x"', 'store.path = "$NOWHERE/x"', "$NOWHERE is not set"),
    ('[store]\npath = "config.toml"', "store.path = ", "a directory, which is created if it is missing; "),
    ('[store]\npath = "config.toml/store"', "store.path = ", "config.toml is a file"),
    ("[api]\nmode = 660", "api.mode = 660", '"0660"'),
    ('[api]\nmode = "rw"', 'api.mode = "rw"', '"0660"'),
    ('[api]\ngroup = "no-such-group"', 'api.group = "no-such-group"', "groupadd"),
    ('[api]\ntcp = "localhost"', 'api.tcp = "localhost"', '"127.0.0.1:7411"'),
    ('[api]\ntcp = "h:99999"', 'api.tcp = "h:99999"', '"127.0.0.1:7411"'),
    ('[[folder]]\npath = "s3://bucket/notes"', "folder[0].path", "hippod follows no object store: mount it"),
    ('[api]\ntoken_file = "gone"', 'api.token_file = "gone"', "there is no"),
    ('[api]\ntoken_file = "gone"', 'api.token_file = "gone"', "openssl rand -hex 32 > "),
    ('[api]\ntoken_file = "drive"', 'api.token_file = "drive"', "not a regular file"),
    (f'[api]\nsocket = "/{"x" * 200}"', "api.socket", "at most 107 bytes"),
    ('[[folder]]\npath = "drvie"', 'folder[0].path = "drvie"', "did you mean"),
    ('[[folder]]\npath = "config.toml"', "folder[0].path", "a directory"),
    ("[[folder]]\n", "folder[0].path is missing", "write path ="),
    ('[folder]\npath = "drive"', "folder", "[[folder]] with two brackets"),
    ('[[folder]]\npath = "drive"\nsettle_ms = "200"', 'folder[0].settle_ms = "200"', "a whole number from 0"),
    ('[[folder]]\npath = "drive"\npolling = 1', "folder[0].polling = 1", "true or false"),
    ('[[folder]]\npath = "drive"\ninclude = "*.md"', 'folder[0].include = "*.md"', "a list of patterns"),
    ('[[folder]]\npath = "drive"\ninclude = []', "folder[0].include = []", "at least one"),
    ('[[folder]]\npath = "drive"\nexclude = ["!"]', "folder[0].exclude", "is not a pattern"),
    ('[[folder]]\npath = "drive"\nmax_bytes = "big"', 'folder[0].max_bytes = "big"', '"64 MiB"'),
    ('[[folder]]\npath = "drive"\n[[folder]]\npath = "./drive"', "folder[1].path", "folder[0]"),
    ('[store]\npath = "drive/store"\n[[folder]]\npath = "drive"', "store.path", "lies inside folder[0]"),
    ("[[kafka]]\n", "kafka[0].topics is missing", "write topics ="),
    ('[[kafka]]\ntopics = ["a"]\nformat = "avro"', 'kafka[0].format = "avro"', 'one of "json", "text"'),
    ('[[kafka]]\ntopics = ["added"]', 'kafka[0].topics = ["added"]', "name another topic"),
    ('[[kafka]]\ntopics = ["a"]\nuris = ["kafka://b/"]', "kafka[0].uris", 'format = "records"'),
    (
        '[[kafka]]\ntopics = ["a"]\nformat = "records"\nuris = ["added:x"]',
        'kafka[0].uris names "added:x"',
        "beginnings of URIs",
    ),
    ('[[kafka]]\ntopics = ["a"]\nformat = "records"\nuris = ["x"]', 'kafka[0].uris names "x"', "beginnings of URIs"),
    (
        '[[kafka]]\ntopics = ["a"]\nformat = "records"\n[[kafka]]\ntopics = ["b"]\nformat = "records"',
        'kafka[1].uris names "kafka://" as kafka[0] does',
        "give the sections different prefixes",
    ),
    ("store = 3", "store = 3", "a table, written [store]"),
    ("[passages]\nmax_tokens = 4.5", "passages.max_tokens = 4.5", "a whole number from 16 to 8192"),
    ("[passages]\nmax_tokens = 20", "passages.min_tokens", "at most passages.max_tokens, which is 20"),
    ('[openie]\nbackend = "rule"', 'openie.backend = "rule"', "did you mean rules?"),
    ('[openie]\nbackend = "llm"', 'openie.backend = "llm"', "llm.base_url"),
    ('[openie]\nreextract = "always"', 'openie.reextract = "always"', "idle"),
    (
        '[openie]\nbackend = "llm"\nreextract = "idle"\n[llm]\nbase_url = "http://localhost:1/v1"\nmodel = "m"',
        'openie.reextract = "idle"',
        'backend = "rules"',
    ),
    ('[retrieval]\nfilter = "llm"', 'retrieval.filter = "llm"', "llm.base_url"),
    ('[llm]\nmodel = "m"', "llm.base_url is not set", "address"),
    ('[llm]\nbase_url = "localhost"', 'llm.base_url = "localhost"', '"http://localhost:8000/v1"'),
    ('[encoder]\nbase_url = "localhost"', 'encoder.base_url = "localhost"', '"http://localhost:8000/v1"'),
    ('[encoder]\ndevice = "gpu"', 'encoder.device = "gpu"', '"cuda"'),
    ('[encoder]\nbackend = "hash"\nmodel = "0"', 'encoder.model = "0"', "a number of dimensions from 1 to 8192"),
    ('[encoder]\nbackend = "hash"\nmodel = "8193"', 'encoder.model = "8193"', "a number of dimensions from 1 to 8192"),
    (f'[encoder]\nbackend = "hash"\nmodel = "{"9" * 5000}"', "encoder.model", "a number of dimensions from 1 to 8192"),
    ('[encoder]\nbackend = "openai"', 'encoder.backend = "openai"', "llm.base_url"),
    ("[retrieval]\ndamping = 1.0", "retrieval.damping = 1.0", "a number above 0 and at most 0.99"),
    ("[retrieval]\ndamping = nan", "retrieval.damping", "a number above 0 and at most 0.99"),
    ('[schedule]\nretry = "often"', 'schedule.retry = "often"', '"15m"'),
    ("[schedule]\nretry = 0.2", "schedule.retry = 0.2", "at least one second"),
    ('[daemon]\nlog_level = "loud"', 'daemon.log_level = "loud"', '"debug", "info", "warning", "error"'),
]


@pytest.mark.parametrize(("text", "named", "allowed"), MISTAKES, ids=[each[0][:40] for each in MISTAKES])
def test_error_names_file_key_value_and_allowed_values(write, text, named, allowed):
    path = write(text)
    found = problems(path)
    assert len(found) == 1, found
    assert found[0].startswith(f"{path}: ")
    assert named in found[0]
    assert allowed in found[0]
    assert "\n" not in found[0]


def test_store_path_through_a_dangling_link_is_an_error(write, tmp_path):
    (tmp_path / "link").symlink_to("disk")
    [problem] = problems(write('[store]\npath = "link"\n'))
    assert f"{tmp_path}/link is a link to disk, which does not exist" in problem
    (tmp_path / "disk").mkdir()
    assert load_config(write('[store]\npath = "link/store"\n')).store.path == tmp_path / "link/store"


def test_all_mistakes_are_reported_at_once(write):
    path = write('[store]\npth = "x"\n[retrieval]\ndamping = 2\n[[folder]]\npath = "gone"\nmax_byte = 1\n')
    found = "\n".join(problems(path, {"HIPPOD_GRAPH__FOO": "1", "HOME": "/h"}))
    for key in ("store.pth", "retrieval.damping", "folder[0].path", "folder[0].max_byte", "HIPPOD_GRAPH__FOO"):
        assert key in found


def test_a_token_file_without_read_permission_is_named(tmp_path):
    (tmp_path / "token").write_text("abc")
    (tmp_path / "token").chmod(0)
    root = os.geteuid() == 0
    if root:  # root can read every file
        os.seteuid(65534)
    try:
        with pytest.raises(ValueError, match=r"token: Permission denied, check its owner and mode"):
            read_token(tmp_path / "token")
    finally:
        if root:
            os.seteuid(0)


def test_backup_directory_inside_a_followed_folder_is_an_error(write, tmp_path):
    text = f'[schedule]\nbackup = "1d"\nbackup_to = "file://{tmp_path}/%s/backups"\n[[folder]]\npath = "drive"\n'
    [problem] = problems(write(text % "drive"))
    assert "schedule.backup_to" in problem
    assert "lies inside folder[0]" in problem
    assert load_config(write(text % "elsewhere")).schedule.backup_to == f"file://{tmp_path}/elsewhere/backups"


@pytest.mark.parametrize(("content", "reason"), [("", "is empty"), ("two words", "one token"), ("x" * 5000, "at most")])
def test_error_about_an_invalid_token_omits_its_content(write, tmp_path, content, reason):
    (tmp_path / "token").write_text(content)
    [problem] = problems(write('[api]\ntoken_file = "token"\n'))
    assert reason in problem
    assert not content or content not in problem


def test_secrets_do_not_appear_in_errors(write):
    text = '[llm]\napi_key = "sk-very-secret"\n[[kafka]]\ntopics = ["a"]\npassword = "sk-very-secret"\n'
    assert "sk-very-secret" not in "\n".join(problems(write(text)))
    text = '[llm]\nbase_url = "http://h/v1"\nmodel = "m"\napi_key_env = "sk-very-secret"\n'
    assert "sk-very-secret" not in "\n".join(problems(write(text)))


def test_unset_api_key_variable_is_an_error(write):
    text = '[llm]\nbase_url = "http://h/v1"\nmodel = "m"\napi_key_env = "MODEL_KEY"\n'
    assert "$MODEL_KEY, which is not set" in problems(write(text))[0]
    assert load_config(write(text), {"MODEL_KEY": "x", "HOME": "/h"}).llm.configured


# --- the environment


def test_the_environment_overrides_the_file(write, tmp_path):
    path = write('[retrieval]\nmode = "bm25"\ntop_triples = 3\n')
    environ = {
        "HOME": "/h",
        "HIPPOD_RETRIEVAL__MODE": "dense",
        "HIPPOD_STORE__PATH": "elsewhere",
        "HIPPOD_GRAPH__SYNONYM_MAX": "7",
        "HIPPOD_SCHEDULE__RETRY": "2m",
        "HIPPOD_SCHEDULE__RESCAN": "90",
        "HIPPOD_API__REQUEST_BYTES": "4096",
        "HIPPOD_ENCODER__MODEL": "42",
        "HIPPOD_SOCKET": "for hippoctl",
    }
    config = load_config(path, environ)
    assert (config.retrieval.mode, config.retrieval.model_dump()["top_triples"], config.graph.synonym_max) == (
        "dense",
        3,
        7,
    )
    assert config.store.path == tmp_path / "elsewhere"
    assert (config.schedule.retry, config.schedule.rescan, config.api.request_bytes) == (120, 90, 4096)
    assert config.encoder.model == "42"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HIPPOD_RETRIEVAL__DAMPNG", "0.5", "did you mean damping?"),
        ("HIPPOD_RETREIVAL__DAMPING", "0.5", "did you mean retrieval?"),
        ("HIPPOD_STORE_PATH", "/x", "HIPPOD_STORE__PATH, with two underscores"),
        ("HIPPOD_FOLDER__PATH", "/x", "[[folder]]"),
        ("HIPPOD_RETRIEVAL__DAMPING", "half", 'retrieval.damping = "half"; allowed is a number above 0'),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(write, name, value, said):
    [problem] = problems(write(""), {"HOME": "/h", name: value})
    assert f"${name}" in problem
    assert said in problem


# --- what is shown, what reloads, what is not there yet


def test_rendered_configuration_loads_as_an_equal_one(write, tmp_path):
    (tmp_path / "token").write_text("abc")
    path = write(
        '[api]\ntcp = "127.0.0.1:7411"\ntoken_file = "token"\nrequest_bytes = 12345\n'
        '[[folder]]\npath = "drive"\nexclude = ["*.log"]\n[schedule]\nretry = "off"\ncompact = 61.5\n'
        '[[kafka]]\ntopics = ["a", "b"]\noptions = { api_version = [2, 3] }\n'
    )
    config = load_config(path, {"HOME": "/h"})
    again = load_config(write(render(config), "again.toml"), {"HOME": "/h"})
    assert again.model_dump() == config.model_dump()


def test_the_rendered_configuration_shows_every_key_and_no_secret(write):
    path = write(
        '[llm]\nbase_url = "https://me:hunter2@models.example/v1"\nmodel = "m"\n'
        '[[kafka]]\ntopics = ["a"]\n[kafka.options]\nsasl_plain_username = "ada"\n'
        'sasl_plain_password = "hunter2"\nssl_password = "hunter2"\n'
    )
    shown = render(load_config(path, {"HOME": "/h"}))
    assert "hunter2" not in shown
    assert 'sasl_plain_username = "ada"' in shown
    tables = tomllib.loads(shown)
    for section, field in Config.model_fields.items():
        if section not in ("folder", "kafka", "client"):
            assert list(tables[section]) == list(model_of(field.annotation).model_fields)


def test_reload_diff_separates_live_settings_from_those_that_need_a_restart(write):
    old = load_config(write("[store]\n"), {"HOME": "/h"})
    new = load_config(
        write(
            '[daemon]\nlog_level = "debug"\n[retrieval]\ntop_triples = 9\n[schedule]\nretry = 5\n'
            '[store]\npath = "x"\n[[folder]]\npath = "drive"\n[graph]\nsynonym_max = 3\n'
        ),
        {"HOME": "/h"},
    )
    live, restart = diff_reload(old, new)
    assert live == ["daemon.log_level", "retrieval.top_triples", "schedule.retry"]
    assert "store.path" in restart
    assert "graph.synonym_max" in restart
    assert "folder[0].path" in restart
    assert diff_reload(new, new) == ([], [])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[openie]\nbackend = "vllm"\n[llm]\nmodel = "m"', "openie.backend"),
        ('[llm]\nbase_url = "http://h/v1"\nmodel = "m"\napi_key_file = "empty"', "llm.api_key_file"),
    ],
)
def test_settings_unsupported_on_this_machine_are_reported(write, text, named):
    path = write(text)
    (path.parent / "empty").touch()
    said = unsupported(load_config(path, {"HOME": "/h"}))
    assert any(named in each for each in said)


# --- any input


@given(st.floats(0, 3e9, allow_nan=False))
def test_any_duration_reads_back_as_written(seconds):
    assert _seconds(duration_text(seconds)) == pytest.approx(seconds, rel=1e-9, abs=1e-9)


@given(st.integers(1, 2**62))
def test_any_size_below_exact_floats_reads_back_as_written(size):
    assert _size(size_text(size)) == (size if size < 2**53 else pytest.approx(size))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted({key for field in Config.model_fields.values() for key in getattr(field.annotation, "model_fields", ())})


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*Config.model_fields, "stores"]),
        VALUES | st.dictionaries(st.sampled_from([*KEYS, "other"]), VALUES, max_size=4),
        max_size=4,
    )
)
def test_any_values_give_a_configuration_or_one_line_errors(tmp_path_factory, tables):
    try:
        text = tomli_w.dumps(tables)
        tomllib.loads(text)
    except (TypeError, ValueError):
        return
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text, "utf-8", "surrogateescape")
    try:
        assert isinstance(load_config(path, {"HOME": "/h"}), Config)
    except ConfigError as error:
        assert all("\n" not in problem for problem in error.problems)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet="[]{}=\"'\\\n#.0a-_:T", max_size=60).map(str.encode))
@pytest.mark.slow
def test_any_file_content_gives_a_configuration_or_printable_errors(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(content)
    try:
        assert isinstance(load_config(path, {"HOME": "/h"}), Config)
    except ConfigError as error:
        assert all(problem.isprintable() for problem in error.problems)


def test_control_characters_in_values_are_escaped_in_errors(write):
    [problem] = problems(write('[[folder]]\npath = "a\\nb\\u001b[2J"\n'))
    assert problem.isprintable()
    assert "a\\nb" in problem


def test_check_with_no_secrets_needs_no_credentials_and_finds_other_errors(tmp_path, monkeypatch):
    """As `systemctl reload` runs it: systemd shows the credentials to hippod itself only."""
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    file = tmp_path / "config.toml"
    file.write_text(
        '[api]\ntcp = "127.0.0.1:7411"\ntoken_file = "$CREDENTIALS_DIRECTORY/token"\n'
        '[llm]\nbase_url = "http://127.0.0.1:8000/v1"\nmodel = "m"\napi_key_file = "$CREDENTIALS_DIRECTORY/llm-key"\n'
        '[[client]]\ntoken_file = "$CREDENTIALS_DIRECTORY/other"\nname = "other"\n'
    )
    check = ["--check", "--config", str(file)]
    assert CliRunner().invoke(main, check).exit_code == 2
    passed = CliRunner().invoke(main, [*check, "--no-secrets"])
    assert passed.exit_code == 0, passed.output
    file.write_text(file.read_text() + "nonsense = 1\n")
    refused = CliRunner().invoke(main, [*check, "--no-secrets"])
    assert (refused.exit_code, "nonsense" in refused.output) == (2, True)
    assert CliRunner().invoke(main, ["--no-secrets", "--config", str(file)]).exit_code == 2
