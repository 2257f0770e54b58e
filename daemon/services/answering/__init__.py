"""Answers by the model: from retrieved passages, over several steps, over a working memory."""
