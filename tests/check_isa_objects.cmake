# Fails if a file of an `isa` folder defines an inline function that another file defines too.
#
# The linker keeps one copy of such a function. If it is the one compiled for AVX-512, every caller
# gets it, and the program ends with an illegal instruction on a machine without: a fault that no
# test on a newer machine sees.
#
#   cmake -DNM=nm -DOBJECTS="a.o;isa/b.o" -P check_isa_objects.cmake

function(weak_symbols object out)
  execute_process(COMMAND ${NM} --defined-only ${object} OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" weak "${symbols}")
  list(TRANSFORM weak REPLACE "^[^ ]* [WVu] " "")
  set(${out} ${weak} PARENT_SCOPE)
endfunction()

set(isa_objects ${OBJECTS})
list(FILTER isa_objects INCLUDE REGEX "/isa/")
list(FILTER isa_objects EXCLUDE REGEX "_scalar\\.")
if(NOT isa_objects)
  message(FATAL_ERROR "no object of an isa folder was given")
endif()

foreach(object IN LISTS OBJECTS)
  weak_symbols(${object} names)
  foreach(name IN LISTS names)
    list(APPEND owners_${name} ${object})
  endforeach()
endforeach()

set(shared "")
foreach(object IN LISTS isa_objects)
  weak_symbols(${object} names)
  foreach(name IN LISTS names)
    if(NOT owners_${name} STREQUAL object)
      list(TRANSFORM owners_${name} REPLACE ".*/" "")
      list(JOIN owners_${name} ", " text)
      list(APPEND shared "${name}: ${text}")
    endif()
  endforeach()
endforeach()
if(shared)
  list(JOIN shared "\n  " text)
  message(FATAL_ERROR "inline functions shared with files for a newer instruction set:\n  ${text}")
endif()
message(STATUS "files for newer instruction sets share no inline function with others")
