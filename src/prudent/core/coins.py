"""Coins that fall the same way each time the same thing is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def keyed_uniform(
    items: Iterable[bytes], key: int | str | bytes
) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), each a keyed hash of one item alone (BLAKE2b).

    The same item and key give the same number in any batch, order or process;
    without the key the numbers cannot be foretold.
    """
    if not isinstance(key, int | str | bytes | np.integer):
        raise TypeError(
            f"`key` must be an int, str or bytes, got {type(key).__name__}."
        )
    encoded = key if isinstance(key, bytes) else str(key).encode()
    secret = hashlib.blake2b(encoded).digest()
    digests = b"".join(
        hashlib.blake2b(item, key=secret, digest_size=8).digest() for item in items
    )
    # The 53 leading bits: a float in [0, 1) exactly.
    leading = np.frombuffer(digests, dtype="<u8") >> np.uint64(11)
    return leading.astype(np.float64) * 2.0**-53
