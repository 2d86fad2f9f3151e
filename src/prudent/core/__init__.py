"""The ground floor: class moments, distances, exact intervals and promises."""
