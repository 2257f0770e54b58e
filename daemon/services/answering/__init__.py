"""The model's answers: from retrieved passages, in several steps, or with a working memory."""
