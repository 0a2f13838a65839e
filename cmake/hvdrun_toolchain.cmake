# Language level, warnings, sanitizers, ccache and where programs land.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Most of a source's time to compile goes to what it includes. Files of one target then share their
# anonymous namespaces: no two of them may define the same name.
set(CMAKE_UNITY_BUILD ${HVDRUN_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
if(HVDRUN_TIDY)
  find_program(CLANG_TIDY clang-tidy REQUIRED)
  set(CMAKE_CXX_CLANG_TIDY ${CLANG_TIDY} --quiet)
endif()

add_library(hvdrun_flags INTERFACE)
add_library(hvdrun::flags ALIAS hvdrun_flags)
target_compile_options(hvdrun_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual)
target_include_directories(hvdrun_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
if(HVDRUN_UNITY)
  # It takes a source that a unit includes for a header.
  target_compile_options(hvdrun_flags INTERFACE -Wno-subobject-linkage)
endif()
if(HVDRUN_WERROR)
  target_compile_options(hvdrun_flags INTERFACE -Werror)
endif()
if(HVDRUN_SANITIZE)
  # -g1 names the lines of a stack. Left out of ubsan: null (asan stops at the access anyway) and
  # alignment, which together double the time to compile.
  add_compile_options(-fsanitize=${HVDRUN_SANITIZE} -fno-sanitize=null,alignment
                      -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${HVDRUN_SANITIZE})
endif()
