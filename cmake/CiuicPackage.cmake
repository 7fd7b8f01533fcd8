# What cmake --install puts into a prefix. Component sdk needs neither LibTorch nor Boost to be used; component runtime is the host.
#
#   include/ciuic/...                       headers: C contract, C++ layer, testing
#   lib/cmake/ciuic/                        find_package(ciuic): ciuic::sdk, ciuic::testing, ciuic::check, ciuic_add_plugin()
#   lib/pkgconfig/ciuic-sdk.pc              the flags of a plugin, without CMake
#   share/ciuic/{conformance,example}/      the kit's sources, and a stranger's plugin project
#   bin/                                    ciuic-check (sdk); ciuic, ciuic-worker, ciuic-probe (runtime)
#   lib/ciuic/plugins/                      the plugins
include(CMakePackageConfigHelpers)

set(package_dir lib/cmake/ciuic)
install(TARGETS ciuic_sdk ciuic_testing EXPORT ciuicTargets COMPONENT sdk)
install(TARGETS ciuic-check EXPORT ciuicTargets RUNTIME DESTINATION bin COMPONENT sdk)
install(EXPORT ciuicTargets NAMESPACE ciuic:: DESTINATION ${package_dir} COMPONENT sdk)
export(EXPORT ciuicTargets NAMESPACE ciuic:: FILE "${CMAKE_BINARY_DIR}/ciuicTargets.cmake")

configure_package_config_file(cmake/ciuicConfig.cmake.in "${CMAKE_BINARY_DIR}/ciuicConfig.cmake" INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor number is a break.
write_basic_package_version_file("${CMAKE_BINARY_DIR}/ciuicConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
configure_file(cmake/ciuic-sdk.pc.in "${CMAKE_BINARY_DIR}/ciuic-sdk.pc" @ONLY)
foreach(program ciuic ciuic-worker ciuic-probe)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION bin COMPONENT runtime)
  endif()
endforeach()
if(CIUIC_WITH_TORCH) # LibTorch stays where it was found: nobody installs two gigabytes twice
  get_filename_component(torch_dir "${LibTorch_CPU_LIBRARY}" DIRECTORY)
  set_target_properties(ciuic-worker ciuic_plugin_communicator_gloo PROPERTIES INSTALL_RPATH "${torch_dir}")
endif()

foreach(file CiuicPlugin.cmake plugin.map)  # the build folder is a package too: -Dciuic_DIR=build
  configure_file(cmake/${file} "${CMAKE_BINARY_DIR}/${file}" COPYONLY)
endforeach()

install(FILES "${CMAKE_BINARY_DIR}/ciuicConfig.cmake" "${CMAKE_BINARY_DIR}/ciuicConfigVersion.cmake"
  cmake/CiuicPlugin.cmake cmake/plugin.map DESTINATION ${package_dir} COMPONENT sdk)
install(FILES "${CMAKE_BINARY_DIR}/ciuic-sdk.pc" DESTINATION lib/pkgconfig COMPONENT sdk)
install(DIRECTORY docs DESTINATION share/doc/ciuic COMPONENT sdk)
install(DIRECTORY sdk/testing/conformance DESTINATION share/ciuic COMPONENT sdk)
if(EXISTS "${PROJECT_SOURCE_DIR}/sdk/example")
  install(DIRECTORY sdk/example DESTINATION share/ciuic COMPONENT sdk)
endif()
