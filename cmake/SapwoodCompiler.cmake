# How every C++ file of the project is compiled.
#
# The baseline instruction set of the platform holds everywhere: a binary must start on any machine
# of its architecture. Only the files of an `isa` folder get more, by file name. What they include must not
# define inline functions that other files use too: the linker keeps one copy, and it may be theirs
# (tests/check_isa_objects.cmake looks).

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

get_property(sapwood_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT CMAKE_BUILD_TYPE AND NOT sapwood_multi_config)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo (keeps assertions) or Debug" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
if(CMAKE_CXX_FLAGS_RELWITHDEBINFO STREQUAL "-O2 -g -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")  # assertions stay on
endif()

find_program(SAPWOOD_CCACHE ccache)
if(SAPWOOD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SAPWOOD_CCACHE})
endif()

# Contraction would fuse a * b + c on some machines only, and bits would differ between them.
set(SAPWOOD_COMPILE_OPTIONS -Wall -Wextra -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies in "literal" + std::string (GCC bug 105651, mended in 13).
  list(APPEND SAPWOOD_COMPILE_OPTIONS -Wno-restrict)
endif()
if(SAPWOOD_WARNINGS_AS_ERRORS)
  list(APPEND SAPWOOD_COMPILE_OPTIONS -Werror)
endif()

# For the whole build tree, GoogleTest built from source included: mixing instrumented and plain
# code makes the thread sanitizer report races that are none.
if(SAPWOOD_SANITIZERS)
  add_compile_options(-fsanitize=${SAPWOOD_SANITIZERS} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SAPWOOD_SANITIZERS})
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(SAPWOOD_ISA_SUFFIXES avx2 avx2vnni avx512vnni shani)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(SAPWOOD_ISA_SUFFIXES neon neon_dotprod neon_i8mm neon_sha2)
else()
  set(SAPWOOD_ISA_SUFFIXES "")
endif()
set(SAPWOOD_ISA_FLAGS_scalar "")
set(SAPWOOD_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(SAPWOOD_ISA_FLAGS_avx2vnni -mavx2 -mfma -mf16c -mavxvnni)
set(SAPWOOD_ISA_FLAGS_avx512vnni -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx2 -mfma
    -mf16c)
set(SAPWOOD_ISA_FLAGS_shani -msha -msse4.1)
set(SAPWOOD_ISA_FLAGS_neon "")
if(NOT SAPWOOD_ISA_FLAGS_neon_dotprod)  # a toolchain file may have its own names for them
  set(SAPWOOD_ISA_FLAGS_neon_dotprod -march=armv8.2-a+dotprod -mtune=cortex-a76)
  set(SAPWOOD_ISA_FLAGS_neon_i8mm -march=armv8.2-a+dotprod+i8mm -mtune=cortex-a76)
  set(SAPWOOD_ISA_FLAGS_neon_sha2 -march=armv8-a+crypto)
endif()

# sapwood_isa_sources(OUT): the files isa/*_<suffix>.cc of this architecture, with their
# flags set. A file named after no known instruction set is an error, not a silent baseline build.
function(sapwood_isa_sources out)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/*/isa/*.cc)
  set(known scalar avx2 avx2vnni avx512vnni shani neon neon_dotprod neon_i8mm neon_sha2)
  set(chosen "")
  foreach(file IN LISTS files)
    set(matched "")
    foreach(suffix IN LISTS known)
      if(file MATCHES "_${suffix}\\.cc$")
        set(matched ${suffix})
      endif()
    endforeach()
    if(NOT matched)
      message(FATAL_ERROR "${file}: name it after an instruction set: *_<${known}>.cc")
    endif()
    if(matched STREQUAL scalar OR matched IN_LIST SAPWOOD_ISA_SUFFIXES)
      set(flags ${SAPWOOD_ISA_FLAGS_${matched}})
      if(SAPWOOD_SANITIZERS AND NOT matched STREQUAL scalar)
        # Instrumented and unrolled, these would take minutes each to compile. The scalar twin, which
        # has the same indices, keeps every check.
        list(APPEND flags -g0 -fno-sanitize=undefined -fno-sanitize-address-use-after-scope)
      endif()
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${flags}")
      list(APPEND chosen ${file})
    endif()
  endforeach()
  set(${out} ${chosen} PARENT_SCOPE)
endfunction()
