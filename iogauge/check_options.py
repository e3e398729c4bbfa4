"""What a site may set of the checks: volumes, repeats and time limits, by kernel and by the checks' variable."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(gt=0, strict=True)]
NotNegative = Annotated[int, Field(ge=0, strict=True)]


#: As ReFrame writes it: ``1h30m``.
Duration = Annotated[str, Field(pattern=r"^\d+[dhms](\d+[hms]){0,3}$", strict=True)]


class _KernelOptions(BaseModel):
    """Of every kernel. None: as the check has it. ``time_limit`` is a job's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repeats: Positive | None = None
    warmup: NotNegative | None = None
    time_limit: Duration | None = None


class _ComparedOptions(_KernelOptions):
    """Of the kernels in C. ``with_baselines: False``: the case alone, without the same through MPI-IO and POSIX beside it."""

    with_baselines: Annotated[bool, Field(strict=True)] | None = None


class BlocksOptions(_ComparedOptions):
    """``size`` in elements: of a rank's block, or of the whole array where a pattern scales strongly."""

    size: Annotated[str, Field(pattern=r"^[1-9]\d*(x[1-9]\d*){2}$", strict=True)] | None = None


class FormatsOptions(_KernelOptions):
    """``arrays`` of ``rows`` by ``columns``, and the chunks where there are some."""

    arrays: Positive | None = None
    rows: Positive | None = None
    columns: Positive | None = None
    chunk_rows: Positive | None = None
    chunk_columns: Positive | None = None
    compression_level: Annotated[int, Field(ge=1, le=9, strict=True)] | None = None


class MetadataOptions(_ComparedOptions):
    """``objects`` of a rank, of each kind."""

    objects: Positive | None = None


class ParticlesOptions(_ComparedOptions):
    """``particles`` of a rank in a step, ``steps``; ``fraction`` of a partial read; ``alignment`` in bytes."""

    particles: Positive | None = None
    steps: Positive | None = None
    fraction: Annotated[float, Field(gt=0, le=1, strict=True)] | None = None
    alignment: NotNegative | None = None


class SegmentsOptions(_ComparedOptions):
    """A rank's ``segments`` of ``block_bytes`` in transfers of ``transfer_bytes``; beside h5perf_serial: its
    ``program``, ``rounds``."""

    segments: Positive | None = None
    block_bytes: Positive | None = None
    transfer_bytes: Positive | None = None
    alignment: NotNegative | None = None
    program: Annotated[str, Field(min_length=1, strict=True)] | None = None
    rounds: Positive | None = None


class TilesOptions(_ComparedOptions):
    """``arrays`` a step with a tile of ``rows`` by ``columns`` a rank, in ``steps``."""

    steps: Positive | None = None
    arrays: Positive | None = None
    rows: Positive | None = None
    columns: Positive | None = None


class UpgradeOptions(_KernelOptions):
    """A rank's ``mebibytes`` in each pattern; ``time_limit_minutes`` of a comparison, ``margin`` as a fraction."""

    mebibytes: Positive | None = None
    time_limit_minutes: Annotated[float, Field(gt=0, strict=True)] | None = None
    margin: Annotated[float, Field(gt=0, lt=1, strict=True)] | None = None


class _UpstreamOptions(_KernelOptions):
    """Of every upstream benchmark: where its ``program`` is, and how long one launch of it may take."""

    program: Annotated[str, Field(min_length=1, strict=True)] | None = None
    launch_seconds: Positive | None = None


class BenchioOptions(_UpstreamOptions):
    """``size`` in elements: of a rank's block, or of the whole array where a case scales strongly."""

    size: Annotated[str, Field(pattern=r"^[1-9]\d*(x[1-9]\d*){2}$", strict=True)] | None = None


class FftOptions(_UpstreamOptions):
    """``datasets`` in a file; ``python``: the one that the File Format Comparison is run with."""

    python: Annotated[str, Field(min_length=1, strict=True)] | None = None
    datasets: Positive | None = None


class H5benchOptions(_UpstreamOptions):
    """A rank's ``particles`` in each of the ``steps``, with ``compute`` between; the kind metadata's ``metadata_steps``;
    ``e3sm_map``, a decomposition of E3SM-IO's; ``plugin_path`` of its async connector."""

    particles: Positive | None = None
    steps: Positive | None = None
    compute: Annotated[str, Field(pattern=r"^\d+ (s|ms|us)$", strict=True)] | None = None
    metadata_steps: Positive | None = None
    e3sm_map: Annotated[str, Field(min_length=1, strict=True)] | None = None
    plugin_path: Annotated[str, Field(min_length=1, strict=True)] | None = None


class H5perfSerialOptions(_UpstreamOptions):
    """Its sizes are those of the cases."""


class H5perfOptions(_UpstreamOptions):
    """A rank's ``block_bytes`` in transfers of ``transfer_bytes``."""

    block_bytes: Positive | None = None
    transfer_bytes: Positive | None = None


class Hdf5IotestOptions(_UpstreamOptions):
    """``arrays`` a step with a tile of ``rows`` by ``columns`` a rank, in ``steps``."""

    steps: Positive | None = None
    arrays: Positive | None = None
    rows: Positive | None = None
    columns: Positive | None = None


class IorOptions(_UpstreamOptions):
    """A rank's ``block_bytes`` in transfers of ``transfer_bytes``."""

    block_bytes: Positive | None = None
    transfer_bytes: Positive | None = None


class CheckOptions(BaseModel):
    """Kernel to what is set of the variables of its checks; the command line's ``-S`` wins over it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: BlocksOptions = BlocksOptions()
    formats: FormatsOptions = FormatsOptions()
    benchio: BenchioOptions = BenchioOptions()
    fft: FftOptions = FftOptions()
    h5bench: H5benchOptions = H5benchOptions()
    h5perf: H5perfOptions = H5perfOptions()
    h5perf_serial: H5perfSerialOptions = H5perfSerialOptions()
    hdf5_iotest: Hdf5IotestOptions = Hdf5IotestOptions()
    ior: IorOptions = IorOptions()
    metadata: MetadataOptions = MetadataOptions()
    particles: ParticlesOptions = ParticlesOptions()
    segments: SegmentsOptions = SegmentsOptions()
    tiles: TilesOptions = TilesOptions()
    upgrade: UpgradeOptions = UpgradeOptions()

    def of(self, kernel: str) -> dict[str, Any]:
        """Variable to value."""
        chosen: _KernelOptions = getattr(self, kernel)
        return chosen.model_dump(exclude_none=True)
