# Looks for a parallel netCDF-4 that was built with the MPI and the HDF5 that the kernels use, since two of either in one
# program do not work together. Sets NETCDF_FOUND; NETCDF_INCLUDE_DIR, NETCDF_LIBRARY; else NETCDF_MISSING: what is wrong.
# Hints: NETCDF_ROOT, the environment's NETCDF_ROOT, NETCDF_DIR, NETCDF_C_ROOT; CMAKE_PREFIX_PATH; pkg-config.
set(NETCDF_FOUND FALSE)
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_search_module(PC_NETCDF QUIET netcdf-mpi netcdf)
endif()
set(NETCDF_HINTS ${NETCDF_ROOT} $ENV{NETCDF_ROOT} $ENV{NETCDF_DIR} $ENV{NETCDF_C_ROOT})
find_path(NETCDF_INCLUDE_DIR netcdf_par.h HINTS ${NETCDF_HINTS} ${PC_NETCDF_PREFIX} ${PC_NETCDF_INCLUDE_DIRS}
  PATH_SUFFIXES include)
find_library(NETCDF_LIBRARY NAMES netcdf_mpi netcdf HINTS ${NETCDF_HINTS} ${PC_NETCDF_LIBRARY_DIRS}
  PATH_SUFFIXES lib lib64)

if(NOT NETCDF_INCLUDE_DIR OR NOT NETCDF_LIBRARY)
  set(NETCDF_MISSING "no parallel netCDF was found (netcdf_par.h and its library)")
elseif(HDF5_C_LIBRARIES MATCHES "libhdf5[^;/]*\\.a|hdf5-static")
  set(NETCDF_MISSING "HDF5 is linked statically, which netCDF cannot share")
else()
  file(WRITE "${CMAKE_BINARY_DIR}/netcdf_probe.c" [[
#include <netcdf.h>
#include <netcdf_par.h>
#include <netcdf_meta.h>
#include <hdf5.h>
#if !NC_HAS_PARALLEL4
#error "serial"
#endif
int main(void)
{
    int file = 0;
    unsigned a = 0, b = 0, c = 0;
    H5get_libversion(&a, &b, &c);
    return nc_create_par("x", NC_NETCDF4, MPI_COMM_SELF, MPI_INFO_NULL, &file);
}
]])
  try_compile(NETCDF_LINKS "${CMAKE_BINARY_DIR}/netcdf_probe" "${CMAKE_BINARY_DIR}/netcdf_probe.c"
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${NETCDF_INCLUDE_DIR};${MPI_C_INCLUDE_DIRS};${HDF5_C_INCLUDE_DIRS}"
    COMPILE_DEFINITIONS ${HDF5_C_DEFINITIONS}
    LINK_LIBRARIES ${NETCDF_LIBRARY} ${HDF5_C_LIBRARIES} ${MPI_C_LIBRARIES}
    OUTPUT_VARIABLE NETCDF_LINK_LOG
    COPY_FILE "${CMAKE_BINARY_DIR}/netcdf_probe.out")
  if(NOT NETCDF_LINKS)
    set(NETCDF_MISSING "${NETCDF_LIBRARY} is not a parallel netCDF-4 that links with this MPI and HDF5")
  else()
    # The loader tells which libraries come together; nothing is run. No ldd: nothing is known against it.
    execute_process(COMMAND ldd "${CMAKE_BINARY_DIR}/netcdf_probe.out" OUTPUT_VARIABLE loaded ERROR_QUIET)
    string(REGEX MATCHALL "libhdf5(_[a-z]*mpi[a-z]*)?(_serial)?\\.so[^ ]* => [^ ]*" hdf5s "${loaded}")
    string(REGEX MATCHALL "lib(mpi|mpich|mpi_intel)\\.so[^ ]* => [^ ]*" mpis "${loaded}")
    list(REMOVE_DUPLICATES hdf5s)
    list(REMOVE_DUPLICATES mpis)
    list(LENGTH hdf5s hdf5_count)
    list(LENGTH mpis mpi_count)
    if(hdf5_count GREATER 1 OR mpi_count GREATER 1)
      set(NETCDF_MISSING "${NETCDF_LIBRARY} was built with another MPI or HDF5 than the kernels")
    else()
      set(NETCDF_FOUND TRUE)
    endif()
  endif()
endif()
