import pytest
from sklearn.datasets import load_iris


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)
