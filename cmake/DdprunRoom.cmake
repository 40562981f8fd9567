# ddprun_room(NAME SOURCES ... LINK ...): one room = one static library ddprun_<NAME>, the
# repository root as include root, our warnings on. ddprun_program() and ddprun_test() share them.

file(RELATIVE_PATH DDPRUN_ROOT_FROM_BUILD ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
string(REGEX REPLACE "/$" "" DDPRUN_ROOT_FROM_BUILD "${DDPRUN_ROOT_FROM_BUILD}")
add_library(ddprun_settings INTERFACE)
target_include_directories(ddprun_settings INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
target_compile_features(ddprun_settings INTERFACE cxx_std_20)
target_compile_options(ddprun_settings INTERFACE
  # __FILE__ begins at the root, with ccache too, which makes the paths of a command relative.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${DDPRUN_ROOT_FROM_BUILD}/=
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${DDPRUN_WERROR}>:-Werror>
  # GCC 12 gives a false -Wrestrict on "literal" + std::string at -O3 (GCC PR 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # With optimization it takes the strings of nested default member initializers for uninitialized
  # (GCC PR 80635 and its duplicates). Debug builds, clang and the sanitizers still check.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<NOT:$<CONFIG:Debug>>>:-Wno-maybe-uninitialized>)
if(DDPRUN_SANITIZE)
  target_compile_options(ddprun_settings INTERFACE -fsanitize=${DDPRUN_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer
    -g1  # the lines in their reports need no more, and the tree is smaller
    # This check opens a pipe; tests that run out of descriptors would end in a false report.
    -fno-sanitize=vptr
    # clang before 17 cannot emit this check for a coroutine ("difference across sections").
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_link_options(ddprun_settings INTERFACE -fsanitize=${DDPRUN_SANITIZE})
  if(DDPRUN_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Asio's fences between handlers, which ThreadSanitizer does not see: one thread runs them all.
    target_compile_options(ddprun_settings INTERFACE -Wno-tsan)
  endif()
endif()
# What is installed makes a defect in it hard to use: programs read what strangers send. Tests are
# not
# optimized, which _FORTIFY_SOURCE needs; a sanitizer finds more by itself.
set(DDPRUN_HARDENING "")
set(DDPRUN_HARDENING_OF_LINKS "")
if(NOT DDPRUN_SANITIZE)
  set(DDPRUN_HARDENING $<$<NOT:$<CONFIG:Debug>>:-fstack-protector-strong>
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND DDPRUN_HARDENING $<$<NOT:$<CONFIG:Debug>>:-fcf-protection=full>)
  endif()
  set(DDPRUN_HARDENING_OF_LINKS $<$<NOT:$<CONFIG:Debug>>:-Wl,-z,relro,-z,now,-z,noexecstack>)
endif()
# ddprun_hardened(TARGET...): targets that are not made by the functions below, too.
function(ddprun_hardened)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE ${DDPRUN_HARDENING})
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL STATIC_LIBRARY)
      target_link_options(${target} PRIVATE ${DDPRUN_HARDENING_OF_LINKS})
    endif()
  endforeach()
endfunction()
# ddprun_fuzzed(TARGET...): the fuzzer sees what the code of these does.
function(ddprun_fuzzed)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
endfunction()
# lld links in a fifth of the time. Programs of an optimized build, which may be installed, are
# linked as the system does it; their tests are not. GCC's sanitizers have not been tried with it.
find_program(DDPRUN_LLD ld.lld)
set(DDPRUN_LINKER "")
if(DDPRUN_LLD AND (NOT DDPRUN_SANITIZE OR CMAKE_CXX_COMPILER_ID STREQUAL Clang))
  set(DDPRUN_LINKER -fuse-ld=lld)
  if(CMAKE_BUILD_TYPE STREQUAL Debug)
    target_link_options(ddprun_settings INTERFACE $<BUILD_INTERFACE:${DDPRUN_LINKER}>)
  endif()
endif()

# The files of a room or a test program are compiled in batches, because most of the time goes into
# headers that they share. So names in unnamed namespaces are unique within a room. Larger batches
# would make each edit slow, above all where coroutines are.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # collecting garbage costs more than the memory it saves
  add_compile_options(--param=ggc-min-heapsize=524288)
endif()
# CMake's own batches (UNITY_BUILD) name files by absolute path: clones at different places would
# share objects through ccache only after the preprocessor, which takes twenty times as long.
function(ddprun_batches target size)
  get_target_property(sources ${target} SOURCES)
  set(batches "")
  while(sources)
    list(SUBLIST sources 0 ${size} batch)
    list(REMOVE_ITEM sources ${batch})
    set(text "// Made by ddprun_batches().\n")
    foreach(source IN LISTS batch)
      cmake_path(ABSOLUTE_PATH source NORMALIZE)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    list(LENGTH batches number)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_batch_${number}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND batches ${file})
  endwhile()
  set_property(TARGET ${target} PROPERTY SOURCES ${batches})
  # GCC takes a batched file for a header, where a member of a file's own type would be a mistake.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

function(ddprun_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINK" ${ARGN})
  if(ROOM_SOURCES)
    add_library(ddprun_${name} STATIC ${ROOM_SOURCES})
    target_link_libraries(ddprun_${name} PUBLIC ddprun_settings ${ROOM_LINK})
    ddprun_batches(ddprun_${name} 4)
    ddprun_hardened(ddprun_${name})
  else()
    add_library(ddprun_${name} INTERFACE)
    target_link_libraries(ddprun_${name} INTERFACE ddprun_settings ${ROOM_LINK})
  endif()
endfunction()

# ddprun_program(NAME [LEAN] SOURCES ... LINK ...). LEAN: starts sooner, because the dynamic loader
# finds nothing but the C library to load; not for programs that load C++ libraries.
function(ddprun_program name)
  cmake_parse_arguments(PROGRAM "LEAN" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  target_link_libraries(${name} PRIVATE ddprun_settings ${PROGRAM_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  ddprun_hardened(${name})
  if(PROGRAM_LEAN AND NOT DDPRUN_SANITIZE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc
      -Wl,--as-needed -Wl,--gc-sections)
  endif()
endfunction()

# No turn of an agent's event loop may use more processor time than this in a test, or the run fails
# (agent/run.cpp). With a sanitizer everything takes longer.
set(DDPRUN_TEST_TURN DDPRUN_TEST_TURN_MS=250)
if(DDPRUN_SANITIZE)
  set(DDPRUN_TEST_TURN DDPRUN_TEST_TURN_MS=5000)
endif()

# ddprun_test(NAME SOURCES ... LINK ... [LABELS label] [TIMEOUT seconds]): a Catch2 program, one
# CTest case per TEST_CASE, labelled `unit` unless told otherwise. With a sanitizer the start of a
# program takes longer than most unit tests: one CTest case for all of them.
function(ddprun_test name)
  cmake_parse_arguments(TEST "" "LABELS;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT TEST_LABELS)
    set(TEST_LABELS unit)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 180)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ddprun_settings ${TEST_LINK} ddprun_test_main)
  # Unoptimized, a test compiles in half the time. What it links is optimized all the same; only
  # inline functions and templates are not.
  target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O0>)
  target_link_options(${name} PRIVATE ${DDPRUN_LINKER})
  ddprun_batches(${name} 8)
  if(DDPRUN_SANITIZE AND TEST_LABELS STREQUAL unit)
    add_test(NAME "${name}: all cases" COMMAND ${name})
    set_tests_properties("${name}: all cases" PROPERTIES LABELS unit TIMEOUT ${TEST_TIMEOUT})
  else()
    catch_discover_tests(${name} TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST
      PROPERTIES LABELS ${TEST_LABELS} TIMEOUT ${TEST_TIMEOUT} ENVIRONMENT ${DDPRUN_TEST_TURN})
  endif()
endfunction()
