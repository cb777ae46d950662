# What the wheel `braid-runtime` holds of the tree: the files of Python that `braid.load` and its models
# import, the libraries and the headers. They lie apart, so that the package braid may be installed too.

set(files
  async_reader.py model.py stream.py __init__.py
  dynamic_shapes/__init__.py dynamic_shapes/binding.py
  execution/__init__.py execution/executors.py execution/request_stream.py
  runtime/__init__.py runtime/artifact.py runtime/buffers.py runtime/device_arrays.py
  runtime/device_ports.py runtime/dtypes.py runtime/interruption.py runtime/manifest.py
  runtime/native.py runtime/native_abi.py runtime/native_stream.py runtime/profile_entries.py
  runtime/weight_index.py
  support/__init__.py support/atomic_file.py support/byte_sizes.py support/collector.py
  support/entry_points.py support/errors.py support/lazy.py support/lockless.py
  support/memory_report.py support/private_files.py
  support/shared_objects.py)
set(destination braid_runtime/lib/braid)
foreach(file ${files})
  get_filename_component(directory ${file} DIRECTORY)
  file(REAL_PATH braid/${file} source BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
  install(FILES ${source} DESTINATION ${destination}/${directory} COMPONENT braid_runtime)
endforeach()
install(TARGETS braid_runtime braid_runtime_static
  LIBRARY DESTINATION ${destination}/runtime COMPONENT braid_runtime
  ARCHIVE DESTINATION ${destination}/runtime COMPONENT braid_runtime)
install(DIRECTORY runtime/native/include DESTINATION ${destination}/runtime/native
  COMPONENT braid_runtime)
