"""Answers a question from retrieved passages: directly, with iterative retrieval, or with HGMem's working memory."""
