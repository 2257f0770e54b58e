"""Optical character recognition: text of pages without a text layer, picture files and pictures in documents."""
