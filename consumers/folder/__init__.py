"""The folder source: follows a directory tree and says what changed in it."""

from consumers.folder.file_uri import file_uri, path_of
from consumers.folder.settings import DEFAULT_EXCLUDE, FolderSettings, FolderState
from consumers.folder.watcher import FolderWatcher

__all__ = ["DEFAULT_EXCLUDE", "FolderSettings", "FolderState", "FolderWatcher", "file_uri", "path_of"]
