"""Vectors in memory: blocks that grow share their arrays, and each keeps its own rows."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa

from lancepart.read.vector_block import VectorBlock

WIDTH = 4


def block(first: int, count: int) -> VectorBlock:
    numbers = np.arange(first * WIDTH, (first + count) * WIDTH, dtype=np.float32)
    made = VectorBlock.of(
        pa.FixedSizeListArray.from_arrays(pa.array(numbers), WIDTH), np.arange(first, first + count, dtype=np.uint64)
    )
    assert made is not None
    return made


def assert_holds(found: VectorBlock, addresses: list[int]) -> None:
    assert found.addresses.tolist() == addresses
    assert found.vectors[:, 0].tolist() == [WIDTH * number for number in addresses]
    np.testing.assert_allclose(found.squares, (found.vectors.astype(np.float64) ** 2).sum(axis=1), rtol=1e-6)


def test_a_block_grows_in_place_and_those_before_it_stay_as_they_are() -> None:
    blocks = [block(0, 16)]
    for number in range(16, 40):
        blocks.append(blocks[-1].with_more(block(number, 1)))

    for size, found in enumerate(blocks, 16):
        assert_holds(found, list(range(size)))
        numbers, addresses, _ = found.nearest([[0.0] * WIDTH], 3, "l2", None)
        assert addresses.tolist() == [0, 1, 2]
        assert numbers.tolist() == [0, 0, 0]
    shared = {id(found.room) for found in blocks[1:]}
    assert len(shared) < 12, "most of them were not copied"
    assert blocks[-1].bytes >= blocks[-1].vectors.nbytes


def test_two_blocks_made_of_one_do_not_meet() -> None:
    first = block(0, 64).with_more(block(64, 1))

    one, other = first.with_more(block(100, 2)), first.with_more(block(200, 3))

    assert_holds(one, [*range(65), 100, 101])
    assert_holds(other, [*range(65), 200, 201, 202])
    assert_holds(first, list(range(65)))


def test_threads_that_extend_one_block_each_get_their_own_rows() -> None:
    first = block(0, 256).with_more(block(256, 1))
    made: dict[int, VectorBlock] = {}
    start = threading.Barrier(8)

    def extend(number: int) -> None:
        start.wait()
        made[number] = first.with_more(block(1_000 + number, 1))

    threads = [threading.Thread(target=extend, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for number, found in made.items():
        assert_holds(found, [*range(257), 1_000 + number])
