"""Opens a checkpoint's folder and checks its files."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from store.checkpoint.files import CHECKED_LATER, MANIFEST, CheckpointUnusable, manifest_checksum, settings
from store.durable_files import checksum_of
from store.index.part import PartFiles
from store.types import SynonymRule
from store.untrusted_names import inside


class SavedCheckpoint(PartFiles):
    """The files of a checkpoint. All sizes are checked, and the checksums of all files except `CHECKED_LATER`."""

    def __init__(self, place: Path, dim: int, rule: SynonymRule) -> None:
        """Raises CheckpointUnusable if the store cannot be opened from the checkpoint."""
        try:
            manifest = json.loads((place / MANIFEST).read_text())
            if manifest.get("settings") != settings(dim, rule):
                raise CheckpointUnusable(f"{place.name} was made by another version or with other settings")
            if manifest.pop("checksum") != manifest_checksum(manifest):
                raise CheckpointUnusable(f"{place.name}/{MANIFEST} is damaged")
            super().__init__(place, manifest["files"], manifest["values"])
            self.commit = int(manifest["commit"])
            self.time = float(manifest["time"])
            self.next_id: dict[str, int] = manifest["next_id"]
            with ThreadPoolExecutor(2) as checkers:
                for name, good in zip(self._files, checkers.map(self._is_intact, self._files), strict=True):
                    if not good:
                        raise CheckpointUnusable(f"{place.name}/{name} is damaged")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointUnusable(f"{place.name} cannot be read: {error}") from error

    def _is_intact(self, name: str) -> bool:
        file = inside(self.place, name)
        size, checksum = self._files[name]
        if file.stat().st_size != size:
            return False
        return any(part in name for part in CHECKED_LATER) or checksum_of(file) == checksum
