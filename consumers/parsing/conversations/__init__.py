"""Conversations that chat programs export: one document for each conversation and day."""
