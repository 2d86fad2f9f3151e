"""One theorem of ranks: from the scores of held-out rows to a rule and its promise."""
