"""Tables and figures of the papers, recomputed: one file per table or figure."""
