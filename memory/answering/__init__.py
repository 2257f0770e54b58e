"""From a question to an answer: one reading, iterative retrieval, or HGMem's working memory."""
