"""The 2-D read selections of the particles kernel against what h5bench's source says of them, stated in numpy."""

from __future__ import annotations

import ctypes
import subprocess
from itertools import pairwise

import numpy as np
import pytest
from conftest import CHECKOUT

FORMS = ("LDC", "RDC", "PRL", "CS")


class _Settings(ctypes.Structure):
    _fields_ = (
        ("form", ctypes.c_int),
        ("rows", ctypes.c_uint64),
        ("columns", ctypes.c_uint64),
        ("block", ctypes.c_uint64 * 2),
        ("stride", ctypes.c_uint64 * 2),
    )


class _Region(ctypes.Structure):
    _fields_ = (
        ("bands", ctypes.c_void_p),
        ("band_count", ctypes.c_size_t),
        ("spans", ctypes.c_void_p),
        ("span_count", ctypes.c_size_t),
        ("rows", ctypes.c_uint64),
        ("elements", ctypes.c_uint64),
    )


class _Box(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint64 * 4), ("count", ctypes.c_uint64 * 4))


def _slice(box: _Box, axis: int) -> slice:
    return slice(box.start[axis], box.start[axis] + box.count[axis])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The kernel's own file, alone."""
    path = tmp_path_factory.mktemp("region") / "region.so"
    source = CHECKOUT / "kernels" / "particles_region.c"
    subprocess.run(["mpicc", "-shared", "-fPIC", "-std=c11", "-O1", "-o", str(path), str(source)], check=True)
    loaded = ctypes.CDLL(str(path))
    loaded.region_row_at.restype = loaded.region_elements_before.restype = ctypes.c_uint64
    loaded.region_boxes.restype = ctypes.c_size_t
    return loaded


def stated(form: str, shape: tuple[int, int], block: tuple[int, int], stride: tuple[int, int]) -> np.ndarray:
    """Which elements are selected, as h5bench_read.c puts its hyperslabs together."""
    chosen = np.zeros(shape, dtype=bool)
    (rows, columns), (b1, b2) = shape, block
    if form == "LDC":
        chosen[:b1, :b2] = True
        chosen[rows - b1 :, columns - b2 :] = True
    elif form == "RDC":
        chosen[rows - b1 :, :b2] = True
        chosen[:b1, columns - b2 :] = True
    elif form == "PRL":
        chosen[:b1, :] = chosen[rows - b1 :, :] = True
        chosen[:, :b2] = chosen[:, columns - b2 :] = True
    else:
        chosen[:b1, :b2] = True
        r, c = stride
        while r + b1 < rows and c + b2 < columns:
            chosen[r : r + b1, c : c + b2] = True
            r, c = r + stride[0], c + stride[1]
    return chosen


def shares(library, form, shape, block, stride, ranks: int) -> list[list[np.ndarray]]:
    """Element numbers that each rank reads, box by box."""
    settings = _Settings(FORMS.index(form), *shape, (ctypes.c_uint64 * 2)(*block), (ctypes.c_uint64 * 2)(*stride))
    region = _Region()
    assert library.region_make(ctypes.byref(region), ctypes.byref(settings)) == 0
    numbers = np.arange(shape[0] * shape[1]).reshape(shape)
    found = []
    for rank in range(ranks):
        ends = [
            library.region_row_at(ctypes.byref(region), ctypes.c_uint64(region.elements * r // ranks))
            for r in (rank, rank + 1)
        ]
        begin, end = map(ctypes.c_uint64, ends)
        count = library.region_boxes(ctypes.byref(region), begin, end, None)
        boxes = (_Box * count)()
        library.region_boxes(ctypes.byref(region), begin, end, boxes)
        found.append([numbers[_slice(box, 0), _slice(box, 1)].ravel() for box in boxes])
        before = [library.region_elements_before(ctypes.byref(region), e) for e in (begin, end)]
        assert before[1] - before[0] == sum(map(len, found[-1]))
    library.region_free(ctypes.byref(region))
    return found


CASES = [
    *[
        (form, shape, block, (1, 1))
        for form in ("LDC", "RDC", "PRL")
        for shape in ((1, 1), (6, 6), (7, 13), (31, 5))
        for block in ((1, 1), (1, 2), (3, 2), (4, 3), (7, 5), (6, 13), (31, 5))
    ],
    *[
        ("CS", shape, block, stride)
        for shape in ((1, 1), (32, 32), (33, 17), (5, 40))
        for block in ((1, 1), (2, 2), (5, 3), (1, 17), (5, 40))
        for stride in ((4, 3), (1, 1), (2, 5), (3, 3), (50, 50))
    ],
]


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 64])
def test_every_element_of_a_region_is_read_by_one_rank_and_once(library, ranks):
    tried = 0
    for form, shape, block, stride in CASES:
        if block[0] > shape[0] or block[1] > shape[1]:
            continue
        tried += 1
        expected = np.flatnonzero(stated(form, shape, block, stride))
        found = np.concatenate(
            [np.concatenate([*share, np.empty(0, int)]) for share in shares(library, form, shape, block, stride, ranks)]
        )
        assert sorted(found.astype(int)) == list(expected), (form, shape, block, stride)
    assert tried > 100


def test_ranks_share_a_region_evenly_but_for_a_row(library):
    for form, stride in (("LDC", (1, 1)), ("PRL", (1, 1)), ("CS", (7, 5))):
        sizes = [sum(map(len, share)) for share in shares(library, form, (200, 30), (19, 7), stride, 3)]
        assert max(sizes) - min(sizes) <= 2 * 30, (form, sizes)


def test_boxes_stand_in_the_order_of_the_rows(library):
    """Memory holds a region row by row: boxes share all rows or none."""

    def rows(box: np.ndarray) -> tuple[int, int]:
        return int(box.min()) // 17, int(box.max()) // 17

    for form, block, stride in (("PRL", (3, 2), (1, 1)), ("CS", (5, 2), (2, 4)), ("LDC", (20, 3), (1, 1))):
        for share in shares(library, form, (33, 17), block, stride, 2):
            for box, following in pairwise(share):
                assert rows(box) == rows(following) or rows(box)[1] < rows(following)[0]
                assert box.min() < following.min()
