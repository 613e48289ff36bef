# 64-bit Arm with musl, statically linked, so that one file runs on any Android and any Linux. The
# compiler is zig's clang, from the PyPI package `ziglang`; scripts/build_engine installs it and sets
# SAPWOOD_ZIG. Its cache (ZIG_GLOBAL_CACHE_DIR) holds the C and C++ libraries it builds on first use.
if(NOT DEFINED SAPWOOD_ZIG)
  set(SAPWOOD_ZIG $ENV{SAPWOOD_ZIG})
endif()
if(NOT EXISTS "${SAPWOOD_ZIG}")
  message(FATAL_ERROR "SAPWOOD_ZIG names no file: run scripts/build_engine --arm64-musl")
endif()
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SAPWOOD_ZIG)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
# With -O2 from the first trial program on: zig compiles its libraries anew for unoptimised programs.
set(CMAKE_C_COMPILER ${SAPWOOD_ZIG} cc -target aarch64-linux-musl -O2)
set(CMAKE_CXX_COMPILER ${SAPWOOD_ZIG} c++ -target aarch64-linux-musl -O2)
set(CMAKE_CXX_ARCHIVE_CREATE "${SAPWOOD_ZIG} ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "${SAPWOOD_ZIG} ranlib <TARGET>")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# The host's headers are another C library's: what is needed of them is named one by one.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR})
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(SAPWOOD_CCACHE SAPWOOD_CCACHE-NOTFOUND CACHE FILEPATH "zig has a cache of its own" FORCE)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)

# A position-independent static executable without symbols, its segments aligned for kernels with
# pages of 16 KiB.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -pie -s -Wl,-z,max-page-size=16384")
# zig names instruction sets in its own way.
set(SAPWOOD_ISA_FLAGS_neon_dotprod -mcpu=cortex_a76)
set(SAPWOOD_ISA_FLAGS_neon_i8mm -mcpu=cortex_a76+i8mm)
set(SAPWOOD_ISA_FLAGS_neon_sha2 -mcpu=generic+crypto+sha2+aes)
