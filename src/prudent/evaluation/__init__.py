"""Methods held against rows they have not seen."""
