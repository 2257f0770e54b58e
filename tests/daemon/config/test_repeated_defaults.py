"""Classes of settings that repeat defaults of the configuration repeat them correctly."""

from dataclasses import asdict
from pathlib import Path

import pytest

from consumers.folder import FolderSettings
from consumers.kafka.settings import KafkaSettings
from consumers.splitting import SplitSettings
from daemon.api.settings import ApiLimits
from daemon.config import load_config
from daemon.pipeline.backpressure import QueueLimits
from daemon.runtime import derived_settings
from daemon.sources.folder import FolderSection
from daemon.sources.kafka.declaration import KafkaSection


def test_settings_of_defaults_are_the_defaults_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("")
    config = load_config(tmp_path / "config.toml", {"HOME": str(tmp_path)})
    monkeypatch.setattr(derived_settings, "raise_open_files", lambda: 1 << 30)
    limits = asdict(derived_settings.api_settings(config).limits)
    refused = {"refused_connections": ApiLimits().refused_connections}  # depends on the limit of open files
    assert limits | refused == asdict(ApiLimits())
    assert config.passages.split == SplitSettings()
    assert derived_settings.queue_limits(config) == QueueLimits()
    section = FolderSection(path=tmp_path)
    repeated = {name: getattr(section, name) for name in asdict(FolderSettings(tmp_path))}
    assert repeated == asdict(FolderSettings(tmp_path))
    kafka = KafkaSection(topics=("articles",))
    assert kafka.settings == KafkaSettings(kafka.brokers, kafka.topics)
