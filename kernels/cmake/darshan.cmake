# The library darshan: links with the static library of Darshan's runtime, by the options that its darshan-config
# (IOGAUGE_DARSHAN) tells: calls are wrapped when the program is linked, so that nothing has to be preloaded.
foreach(options IN ITEMS pre post)
  execute_process(COMMAND "${IOGAUGE_DARSHAN}" --${options}-ld-flags OUTPUT_VARIABLE told RESULT_VARIABLE status
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE problem)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "IOGAUGE_DARSHAN: ${IOGAUGE_DARSHAN} --${options}-ld-flags failed: ${status} ${problem}")
  endif()
  # The shared library of the same name has no wrappers.
  string(REPLACE "-ldarshan" "-l:libdarshan.a" told "${told}")
  separate_arguments(darshan_${options} UNIX_COMMAND "${told}")
endforeach()
add_library(darshan INTERFACE)
target_link_options(darshan INTERFACE ${darshan_pre})
target_link_libraries(darshan INTERFACE ${darshan_post} MPI::MPI_C ${HDF5_C_LIBRARIES} m)
