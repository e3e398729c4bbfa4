"""The three formats behind one interface: the same chunks and compression, and nothing else done to the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from sizes import Sizes


@dataclass(frozen=True)
class Layout:
    """How an array is stored. ``gzip`` is the level, ``others`` whatever else is done to its data."""

    shape: tuple[int, ...]
    datatype: str
    chunks: tuple[int, ...] | None
    gzip: int | None
    others: tuple[str, ...]


def wanted(sizes: Sizes) -> Layout:
    """What every array has to look like in every format."""
    return Layout(tuple(sizes.elements), sizes.datatype, tuple(sizes.chunks), sizes.gzip, ())


Mode = Literal["create", "update", "read"]


class Arrays(ABC):
    """An open file of one format. An array is written by ``array[...] = data`` and read by ``array[...]``."""

    package: ClassVar[str]
    suffix: ClassVar[str]

    @abstractmethod
    def __init__(self, path: Path, mode: Mode, sizes: Sizes) -> None: ...

    @abstractmethod
    def add(self, name: str) -> None:
        """Create an array."""

    @abstractmethod
    def array(self, name: str) -> Any:
        """Open an array."""

    @abstractmethod
    def flush(self) -> None:
        """Hand everything to the system."""

    @abstractmethod
    def close(self) -> None: ...

    @staticmethod
    @abstractmethod
    def layout(array: Any) -> Layout:
        """How an open array is stored, as the library tells."""

    @staticmethod
    def described(sizes: Sizes) -> dict[str, int]:
        """What the record's pattern holds for this format alone."""
        return {"chunk_cache_bytes": sizes.chunk_cache_bytes}


class Hdf5(Arrays):
    """HDF5 through h5py."""

    package, suffix = "h5py", ".hdf5"

    def __init__(self, path: Path, mode: Mode, sizes: Sizes) -> None:
        import h5py

        word = {"create": "x", "update": "r+", "read": "r"}[mode]
        self._file = h5py.File(path, word, rdcc_nbytes=sizes.chunk_cache_bytes)
        self._how = {
            "shape": tuple(sizes.elements),
            "dtype": sizes.datatype,
            "chunks": tuple(sizes.chunks),
            "compression": "gzip" if sizes.gzip else None,
            "compression_opts": sizes.gzip,
            "shuffle": False,
            "fletcher32": False,
            "fill_time": "never",
        }

    def add(self, name: str) -> None:
        self._file.create_dataset(name, **self._how)

    def array(self, name: str) -> Any:
        return self._file[name]

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    @staticmethod
    def layout(array: Any) -> Layout:
        properties = array.id.get_create_plist()
        filters = [properties.get_filter(i)[3].decode() for i in range(properties.get_nfilters())]
        others = tuple(name for name in filters if name != "deflate")
        level = array.compression_opts if array.compression == "gzip" else None
        return Layout(array.shape, array.dtype.name, array.chunks, level, others)


class NetCdf(Arrays):
    """netCDF-4 through netCDF4: fixed dimensions, no fill values, and values as they are in the file."""

    package, suffix = "netCDF4", ".netc"

    def __init__(self, path: Path, mode: Mode, sizes: Sizes) -> None:
        import netCDF4

        netCDF4.set_chunk_cache(sizes.chunk_cache_bytes)
        word: Any = {"create": "x", "update": "r+", "read": "r"}[mode]
        self._file = netCDF4.Dataset(path, word, format="NETCDF4")
        self._file.set_auto_maskandscale(False)
        self._how: dict[str, Any] = {}
        if mode == "create":
            axes = [f"axis_{i}" for i in range(len(sizes.elements))]
            for axis, length in zip(axes, sizes.elements, strict=True):
                self._file.createDimension(axis, length)
            self._how = {
                "datatype": sizes.datatype,
                "dimensions": axes,
                "chunksizes": sizes.chunks,
                "compression": "zlib" if sizes.gzip else None,
                "complevel": sizes.gzip,
                "shuffle": False,
                "fletcher32": False,
                "fill_value": False,
            }

    def add(self, name: str) -> None:
        self._file.createVariable(name, **self._how)

    def array(self, name: str) -> Any:
        return self._file.variables[name]

    def flush(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()

    @staticmethod
    def layout(array: Any) -> Layout:
        chunks = array.chunking()
        filters = array.filters()
        others = [name for name, how in filters.items() if how and name not in ("zlib", "complevel")]
        others += ["unlimited" for dimension in array.get_dims() if dimension.isunlimited()]
        level = filters["complevel"] if filters["zlib"] else None
        return Layout(
            array.shape, array.dtype.name, None if chunks == "contiguous" else tuple(chunks), level, tuple(others)
        )


class Zarr(Arrays):
    """Zarr format 3 in a folder. One chunk at a time, as the others do: not Zarr's threads are compared, but formats."""

    package, suffix = "zarr", ".zarr"

    def __init__(self, path: Path, mode: Mode, sizes: Sizes) -> None:
        import zarr
        from zarr.codecs import GzipCodec

        zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})
        word: Any = {"create": "w-", "update": "r+", "read": "r"}[mode]
        self._group = zarr.open_group(path, mode=word, zarr_format=3)
        self._how: dict[str, Any] = {
            "shape": tuple(sizes.elements),
            "dtype": sizes.datatype,
            "chunks": tuple(sizes.chunks),
            "compressors": GzipCodec(level=sizes.gzip) if sizes.gzip else None,
            "filters": None,
            "fill_value": 0,
            # Else every chunk is compared with the fill value first.
            "config": {"write_empty_chunks": True},
        }

    def add(self, name: str) -> None:
        self._group.create_array(name, **self._how)

    def array(self, name: str) -> Any:
        return self._group[name]

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        self._group.store.close()

    @staticmethod
    def layout(array: Any) -> Layout:
        from zarr.codecs import GzipCodec

        gzip = [codec for codec in array.compressors if isinstance(codec, GzipCodec)]
        others = [type(codec).__name__ for codec in (*array.filters, *array.compressors) if codec not in gzip]
        others += ["shards"] if array.shards else []
        others += [] if array.metadata.zarr_format == 3 else ["format 2"]
        return Layout(array.shape, array.dtype.name, array.chunks, gzip[0].level if gzip else None, tuple(others))

    @staticmethod
    def described(sizes: Sizes) -> dict[str, int]:
        return {"threads": 1}


FORMATS: dict[str, type[Arrays]] = {"hdf5": Hdf5, "zarr": Zarr, "netcdf": NetCdf}
