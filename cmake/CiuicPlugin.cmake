# ciuic_add_plugin(NAME gloo KIND communicator SOURCES gloo.cpp ... [LIBRARIES target ...])
#
# One shared library with one exported symbol. Sets: MODULE, hidden visibility, the export map (so that nothing of ours or of
# a static dependency can be interposed), immediate binding, and the output folder build/plugins.
set(CIUIC_PLUGIN_EXPORT_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

function(ciuic_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NOT_INSTALLED" "NAME;KIND;TARGET" "SOURCES;LIBRARIES")
  foreach(required NAME KIND SOURCES)
    if(NOT arg_${required})
      message(FATAL_ERROR "ciuic_add_plugin: ${required} is missing")
    endif()
  endforeach()
  set(target ciuic_plugin_${arg_KIND}_${arg_NAME})
  if(arg_TARGET)
    set(target ${arg_TARGET})
  endif()
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ciuic::sdk ${arg_LIBRARIES})
  if(TARGET ciuic::flags)
    target_link_libraries(${target} PRIVATE ciuic::flags)
  endif()
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${arg_NAME}
    CXX_VISIBILITY_PRESET hidden
    C_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${CIUIC_PLUGIN_EXPORT_MAP}")
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  target_link_options(${target} PRIVATE
    "LINKER:--version-script=${CIUIC_PLUGIN_EXPORT_MAP}" LINKER:-z,defs LINKER:-z,now LINKER:-z,relro)
  if(CIUIC_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-z,undefs) # the sanitizer's runtime is in the executable
  endif()
  if(CIUIC_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CIUIC_PLUGIN_OUTPUT_DIRECTORY}")
  endif()
  if(arg_NOT_INSTALLED)
    return()
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/ciuic/plugins)
  set_property(GLOBAL APPEND PROPERTY CIUIC_PLUGIN_TARGETS ${target})
endfunction()
