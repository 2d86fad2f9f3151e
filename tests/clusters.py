"""Two worker processes of dask for the tests that kill one of them."""

from contextlib import contextmanager

import pytest
from distributed import Client, LocalCluster

# distributed leaves sockets to the garbage collector when a worker dies
CLUSTER_MARKS = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use"),
    pytest.mark.filterwarnings("ignore:chunks are small"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@contextmanager
def two_workers(set_as_default):
    """Client of a cluster of two processes with one thread each."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster, set_as_default=set_as_default) as client,
    ):
        client.wait_for_workers(2, timeout=60)  # a cluster may begin with one
        yield client
