# What the wheel `braid-runtime` holds of the tree: the files of Python that `braid.load` and its models
# import, the libraries and the headers. They lie apart, so that the package braid may be installed too.

set(files
  __init__.py
  runtime/__init__.py runtime/artifact.py runtime/async_reader.py runtime/binding.py
  runtime/boundary.py runtime/buffers.py runtime/descriptor_specs.py runtime/device_arrays.py
  runtime/device_plugins.py runtime/device_ports.py runtime/device_reports.py runtime/dtypes.py
  runtime/executors.py runtime/growing_state.py runtime/interruption.py runtime/manifest.py
  runtime/model.py runtime/model_html.py runtime/native.py runtime/native_abi.py
  runtime/native_stream.py runtime/package.py runtime/profile_entries.py runtime/request_stream.py
  runtime/signature_text.py runtime/state_names.py runtime/state_order.py runtime/state_session.py
  runtime/stream.py
  runtime/torch_tensors.py runtime/traces.py runtime/weight_index.py
  support/__init__.py support/atomic_file.py support/byte_sizes.py support/checked_keywords.py
  support/collector.py support/distribution.py support/entry_points.py support/errors.py
  support/lazy.py support/lockless.py support/memory_report.py support/model_bytes.py
  support/option_names.py support/private_files.py support/shared_objects.py
  support/size_counts.py)
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
