"""The rejection game on a finite event space."""
