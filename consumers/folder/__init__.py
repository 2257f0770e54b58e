"""The folder source: follows a directory tree and reports new, changed, moved and removed files."""

from consumers.folder.file_uri import file_uri, path_of
from consumers.folder.folder_watcher import FolderWatcher
from consumers.folder.settings import FolderSettings, FolderState
from consumers.folder.tree.hardlinks import HardLinks

__all__ = ["FolderSettings", "FolderState", "FolderWatcher", "HardLinks", "file_uri", "path_of"]
