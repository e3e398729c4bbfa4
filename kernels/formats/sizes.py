"""What the YAML file says: the File Format Comparison's keys, and ours."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

HDF5_LARGEST_CHUNK_BYTES = (1 << 32) - 1
ITEM_BYTES = {"float32": 4, "float64": 8, "int32": 4, "int64": 8}

Count = Annotated[int, Field(gt=0)]


class Sizes(BaseModel):
    """What the YAML file says: arrays of one shape in one file, how they are stored, and how often it is all done."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    file_name: str = Field(alias="FILE_NAME", max_length=200)
    datasets: int = Field(alias="NUMBER_DATASETS", gt=0, le=10_000_000)
    elements: list[Count] = Field(alias="NUMBER_ELEMENTS", min_length=1, max_length=3)
    chunk: list[Count] = Field(alias="CHUNK_ELEMENTS", default=[], min_length=1)
    datatype: Literal["float32", "float64", "int32", "int64"] = Field(alias="DATATYPE", default="float32")
    compress: Literal["none", "gzip"] = Field(alias="COMPRESSION", default="none")
    compress_level: int = Field(alias="COMPRESSION_LEVEL", default=4, ge=1, le=9)
    repeats: int = Field(alias="REPEATS", default=5, ge=1, le=100_000)
    seed: int = Field(alias="SEED", default=1, ge=0, lt=1 << 63)

    @field_validator("file_name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if name in ("", ".", "..") or any(c == "/" or not c.isprintable() for c in name):
            raise ValueError("a plain file name without a folder is expected")
        return name

    @field_validator("chunk")
    @classmethod
    def _inside(cls, chunk: list[int], info: ValidationInfo) -> list[int]:
        elements = info.data.get("elements", chunk)
        if len(chunk) != len(elements) or any(c > n for c, n in zip(chunk, elements, strict=True)):
            raise ValueError(f"a size for each of NUMBER_ELEMENTS, none larger than in {elements}, is expected")
        return chunk

    @field_validator("compress_level")
    @classmethod
    def _of_gzip(cls, level: int, info: ValidationInfo) -> int:
        if info.data.get("compress") == "none":
            raise ValueError("belongs to COMPRESSION: gzip")
        return level

    @model_validator(mode="after")
    def _fits(self) -> Sizes:
        if self.bytes >= 1 << 63:
            raise ValueError("NUMBER_DATASETS of NUMBER_ELEMENTS are more bytes than a file offset holds")
        if self.chunk_bytes > HDF5_LARGEST_CHUNK_BYTES:
            raise ValueError(
                f"a chunk of {self.chunk_bytes} bytes; HDF5 allows {HDF5_LARGEST_CHUNK_BYTES}: set CHUNK_ELEMENTS"
            )
        return self

    @property
    def chunks(self) -> list[int]:
        """Elements of a chunk in each dimension; the array's own where the file does not say."""
        return self.chunk or self.elements

    @property
    def array_bytes(self) -> int:
        """Of one array's elements."""
        return math.prod(self.elements) * ITEM_BYTES[self.datatype]

    @property
    def bytes(self) -> int:
        """Of all arrays' elements."""
        return self.datasets * self.array_bytes

    @property
    def chunk_bytes(self) -> int:
        """Of one chunk's elements."""
        return math.prod(self.chunks) * ITEM_BYTES[self.datatype]

    @property
    def chunk_cache_bytes(self) -> int:
        """Of HDF5's chunk cache, in both formats that have it: every chunk passes it once.

        Without a cache HDF5 moves row by row what is not contiguous in memory. A chunk that is the array is contiguous,
        and needs none.
        """
        return 0 if self.chunks == self.elements else self.chunk_bytes

    @property
    def names(self) -> list[str]:
        """Of the arrays."""
        return [f"Dataset_{i}" for i in range(self.datasets)]

    @property
    def gzip(self) -> int | None:
        """The level of gzip, where the arrays are compressed."""
        return self.compress_level if self.compress == "gzip" else None
