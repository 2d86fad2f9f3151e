"""The path of a fit stays as short as it has become: see tools/trace_fit.py."""

from tools.trace_fit import split_fit


def test_a_split_conformal_fit_crosses_no_more_functions_files_and_levels():
    functions, depth = split_fit()
    files = {function.split(":")[0] for function in functions}
    # The goal is 20 functions in 6 files, 6 deep: lower these, never raise them.
    assert len(functions) <= 37, functions
    assert len(files) <= 8, files
    assert depth <= 6
