"""Checkpoints: the derived part of the memory in files, so that a start loads it instead of deriving it.

`snapshot-<commit>/` next to the tables holds derived data that takes long to compute: vectors (mapped into memory), postings,
sketches, edges, counts. A start maps these files, then applies the commits after the checkpoint. A folder is complete or
absent: it is written under another name, synced, and renamed. `manifest.json` has the checksum of every file. Nothing in a
checkpoint is ever executed.
"""
