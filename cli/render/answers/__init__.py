"""How an answer looks in the terminal: passages, a written answer, why they came, and the steps that led there."""
