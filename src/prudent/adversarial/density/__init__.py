"""One class learnt from rows: low density is rejected at a held-out cut."""
