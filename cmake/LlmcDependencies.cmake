# What is used from outside, all found here. tools/setup installs it; see README.md.
set(LLMC_LLVM_ROOT "/usr/lib/llvm-19" CACHE PATH "Where LLVM and MLIR 19 are installed")
find_package(MLIR REQUIRED CONFIG HINTS "${LLMC_LLVM_ROOT}/lib/cmake/mlir")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})

find_package(Protobuf REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# Debian's dnnl-config.cmake asks for OpenCL's headers, which the CPU engine never needs: name the library ourselves.
find_path(LLMC_DNNL_INCLUDE oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(LLMC_DNNL_LIBRARY dnnl REQUIRED)
add_library(DNNL::dnnl SHARED IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${LLMC_DNNL_LIBRARY}"
                      INTERFACE_INCLUDE_DIRECTORIES "${LLMC_DNNL_INCLUDE}")
# Debian's GlooConfig.cmake leaves out where it stands: name the library ourselves.
find_path(LLMC_GLOO_INCLUDE gloo/config.h REQUIRED)
find_library(LLMC_GLOO_LIBRARY gloo REQUIRED)
add_library(Gloo::gloo SHARED IMPORTED)
set_target_properties(Gloo::gloo PROPERTIES IMPORTED_LOCATION "${LLMC_GLOO_LIBRARY}"
                      INTERFACE_INCLUDE_DIRECTORIES "${LLMC_GLOO_INCLUDE}")
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_path(LLMC_XXHASH_INCLUDE xxhash.h REQUIRED)

# The ONNX C++ library, built once by tools/setup into a cache outside the build folder.
set(LLMC_CACHE "$ENV{LLMC_CACHE}" CACHE PATH "Where tools/setup keeps what it builds (default ~/.cache/llmc)")
if(NOT LLMC_CACHE)
  set(LLMC_CACHE "$ENV{HOME}/.cache/llmc" CACHE PATH "" FORCE)
endif()
find_package(ONNX 1.23.2 EXACT CONFIG REQUIRED HINTS "${LLMC_CACHE}/onnx-1.23.2")
