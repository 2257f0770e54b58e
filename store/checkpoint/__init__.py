"""Checkpoints: files with the derived part of the memory, which a start loads instead of deriving it again.

The folder `snapshot-<commit>/` next to the tables contains derived data that takes long to compute: vectors (mapped into
memory), postings, sketches, edges, counts. A start maps these files, then applies the commits made after the checkpoint. A
folder is either complete or absent: it is written under a temporary name, synced, and renamed. `manifest.json` contains the
checksum of every file. Loading a checkpoint never executes code from it.
"""
