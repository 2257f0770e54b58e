"""The folder source: follows a directory tree and reports new, changed, moved and removed files."""

from consumers.folder.file_uri import file_uri, path_of
from consumers.folder.folder_watcher import FolderWatcher
from consumers.folder.hardlinks import HardLinks
from consumers.folder.settings import FolderSettings, FolderState

__all__ = ["FolderSettings", "FolderState", "FolderWatcher", "HardLinks", "file_uri", "path_of"]
