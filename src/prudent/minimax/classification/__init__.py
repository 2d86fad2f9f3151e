"""Planes between classes, each with a bound on the error of every class."""
