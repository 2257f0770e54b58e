"""The folder source: follows a directory tree and says what changed in it."""

from consumers.folder.settings import DEFAULT_EXCLUDE, FolderSettings, FolderState
from consumers.folder.source import FolderSource
from consumers.folder.uri import file_uri, path_of

__all__ = ["DEFAULT_EXCLUDE", "FolderSettings", "FolderSource", "FolderState", "file_uri", "path_of"]
