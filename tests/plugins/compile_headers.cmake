# Compiles the ABI umbrella in each language that a plugin may be written in, and every header of the C++ layer alone.
file(MAKE_DIRECTORY "${WORK}")
set(warnings -Wall -Wextra -Wpedantic -Werror)

function(compile language standard header)
  set(source "${WORK}/include.txt")
  file(WRITE "${source}" "#include <${header}>\n")
  execute_process(
    COMMAND "${COMPILER}" -x ${language} -std=${standard} -fsyntax-only -I${INCLUDE} -I${TESTING} ${warnings} ${ARGN} "${source}"
    RESULT_VARIABLE code ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(SEND_ERROR "${COMPILER} -std=${standard} <${header}>:\n${text}")
  endif()
endfunction()

foreach(standard c99 c11 c17)
  compile(c ${standard} ciuic/abi/ciuic.h -Wpadded)
endforeach()
foreach(standard c++17 c++20)
  compile(c++ ${standard} ciuic/abi/ciuic.h -Wpadded)
endforeach()

file(GLOB abi RELATIVE "${INCLUDE}" "${INCLUDE}/ciuic/abi/*.h")
foreach(header ${abi})
  compile(c c99 ${header} -Wpadded)
endforeach()
file(GLOB layer RELATIVE "${INCLUDE}" "${INCLUDE}/ciuic/*.hpp")
foreach(header ${layer})
  compile(c++ c++17 ${header})
endforeach()
file(GLOB testing RELATIVE "${TESTING}" "${TESTING}/ciuic/testing/*.hpp")
foreach(header ${testing})
  compile(c++ c++17 ${header})
endforeach()
