"""What all families share: class moments, distances, exact intervals and promises."""
