# ciuic_add_plugin(NAME csv KIND profiler SOURCES csv.cpp ... [LIBRARIES target ...])
#
# One shared library lib<name>.so with one exported symbol. Sets: MODULE, hidden visibility, the export map (so that nothing of ours
# or of a static dependency can be interposed), immediate binding and, where tests are on, the CTest case conformance.<kind>.<name>,
# which runs the conformance kit at level 3. The same function serves the tree and, installed, everyone else.
#
# TARGET names the target (default ciuic_plugin_<kind>_<name>); NOT_INSTALLED leaves out install rule and test; CHECK_ARGUMENTS go to
# ciuic-check.
set(CIUIC_PLUGIN_EXPORT_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

function(ciuic_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NOT_INSTALLED" "NAME;KIND;TARGET" "SOURCES;LIBRARIES;CHECK_ARGUMENTS")
  foreach(required NAME KIND SOURCES)
    if(NOT arg_${required})
      message(FATAL_ERROR "ciuic_add_plugin: ${required} is missing")
    endif()
  endforeach()
  set(kinds communicator sharding optimizer precision batch_scheduler checkpoint profiler)
  if(NOT arg_KIND IN_LIST kinds AND NOT arg_NOT_INSTALLED)
    list(JOIN kinds ", " expected)
    message(FATAL_ERROR "ciuic_add_plugin(${arg_NAME}): KIND is \"${arg_KIND}\", expected one of ${expected}")
  endif()
  set(target ciuic_plugin_${arg_KIND}_${arg_NAME})
  if(arg_TARGET)
    set(target ${arg_TARGET})
  endif()
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ciuic::sdk ${arg_LIBRARIES} $<TARGET_NAME_IF_EXISTS:ciuic::flags>)
  set_target_properties(${target} PROPERTIES
    PREFIX lib
    OUTPUT_NAME ${arg_NAME}
    CXX_VISIBILITY_PRESET hidden
    C_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${CIUIC_PLUGIN_EXPORT_MAP}")
  # A unique symbol would keep the library mapped for ever, and be shared with others.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  target_link_options(${target} PRIVATE
    "LINKER:--version-script=${CIUIC_PLUGIN_EXPORT_MAP}" LINKER:-z,defs LINKER:-z,now LINKER:-z,relro LINKER:-z,noexecstack)
  if(CIUIC_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-z,undefs) # the sanitizer's runtime is in the executable
  endif()
  if(CIUIC_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CIUIC_PLUGIN_OUTPUT_DIRECTORY}")
  endif()
  if(arg_NOT_INSTALLED)
    return()
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/ciuic/plugins COMPONENT runtime)
  ciuic_add_conformance_test(${target} ${arg_KIND} ${arg_NAME} ${arg_CHECK_ARGUMENTS})
endfunction()

function(ciuic_add_conformance_test target kind name)
  if(NOT TARGET ciuic::check OR CIUIC_BUILD_TESTS STREQUAL OFF)
    return()
  endif()
  add_test(NAME conformance.${kind}.${name} COMMAND $<TARGET_FILE:ciuic::check> $<TARGET_FILE:${target}> ${ARGN})
  set_tests_properties(conformance.${kind}.${name} PROPERTIES LABELS conformance TIMEOUT 300)
endfunction()
