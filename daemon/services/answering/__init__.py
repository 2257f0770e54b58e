"""Answers by the model: from retrieved passages, in several steps, or with a working memory."""
