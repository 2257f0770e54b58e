"""The derived part of the memory written down, so that a start reads it instead of working it out again.

`snapshot-<commit>/` beside the tables holds what follows from them and takes long to derive: vectors (mapped into memory, not
read), postings, sketches, edges, counts. Texts and documents are read from the tables, and the commits after the checkpoint's
are applied on top. A folder is complete or absent: it is written under another name, synced, and renamed. `manifest.json` has
the checksum of every file; nothing in it is ever executed.
"""
