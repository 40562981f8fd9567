# Run by CTest with -P. Any command that fails, or an answer that differs, fails the test.
function(run expected)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output
    RESULT_VARIABLE status TIMEOUT 60)
  string(JOIN " " command ${ARGN})
  if(NOT status STREQUAL "0")
    message(FATAL_ERROR "${command}\nended with ${status}:\n${output}")
  endif()
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${command}\nprinted no '${expected}':\n${output}")
  endif()
endfunction()

# The C compiler that belongs to CXX: clang++ -> clang, g++-12 -> gcc-12, c++ -> cc.
string(REGEX REPLACE "clang\\+\\+([^/]*)$" "clang\\1" CC "${CXX}")
string(REGEX REPLACE "g\\+\\+([^/]*)$" "gcc\\1" CC "${CC}")
string(REGEX REPLACE "c\\+\\+$" "cc" CC "${CC}")
set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()

unset(ENV{DESTDIR})
file(REMOVE_RECURSE ${WORK_DIR})
run("" ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/staged)
file(RENAME ${WORK_DIR}/staged ${WORK_DIR}/tree)  # nothing in it may know where it was staged
run("" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${CONSUMER_DIR} -B ${WORK_DIR}/build
  -D CMAKE_PREFIX_PATH=${WORK_DIR}/tree -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_COMPILER=${CC}
  -D CMAKE_CXX_FLAGS=${flags} -D CMAKE_C_FLAGS=${flags} -D WANTED_VERSION=${VERSION})
run("" ${CMAKE_COMMAND} --build ${WORK_DIR}/build)

foreach(program consumer_c consumer_cpp)
  run("rank 0 of 1, no launcher" ${WORK_DIR}/build/${program})
endforeach()

foreach(file man/man1/ddprun.1 man/man1/ddprun-rdzvd.1 bash-completion/completions/ddprun
        zsh/site-functions/_ddprun fish/vendor_completions.d/ddprun.fish)
  run("nproc.*per|max.*runs" cat ${WORK_DIR}/tree/share/${file})
endforeach()

set(ddprun ${WORK_DIR}/tree/${BINDIR}/ddprun)
run("ddprun ${VERSION}" ${ddprun} --version)
run("ddprun-rdzvd" ${ddprun}-rdzvd --help)
run("ddprun-launch .options." ${ddprun}-launch --help)
foreach(program consumer_c consumer_cpp)
  run("rank 1 of 2, launched" ${ddprun} --standalone --nproc-per-node 2 --no-python
    ${WORK_DIR}/build/${program})
endforeach()

# The examples are projects of their own: one in C++, one in C alone.
run("" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${EXAMPLES_DIR}/ring -B ${WORK_DIR}/ring
  -D CMAKE_PREFIX_PATH=${WORK_DIR}/tree -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_CXX_FLAGS=${flags})
run("" ${CMAKE_COMMAND} --build ${WORK_DIR}/ring)
run("" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${EXAMPLES_DIR}/c -B ${WORK_DIR}/c
  -D CMAKE_PREFIX_PATH=${WORK_DIR}/tree -D CMAKE_C_COMPILER=${CC} -D CMAKE_C_FLAGS=${flags})
run("" ${CMAKE_COMMAND} --build ${WORK_DIR}/c)
set(of_4 ${ddprun} --standalone --nproc-per-node 4)
foreach(rank RANGE 3)
  run("rank ${rank} of 4: sum 60 64 68 72\n" ${of_4} ${WORK_DIR}/ring/ring)
  run("rank ${rank} of 4: pi is about 3\\.1[345] after 100 steps" ${of_4} ${WORK_DIR}/c/pi 100)
endforeach()
run("token: 6\n" ${of_4} ${WORK_DIR}/ring/ring)
run("token: 0\nrank 0 of 1: sum 0 1 2 3\n" ${WORK_DIR}/ring/ring)

# Other build systems ask pkg-config.
find_program(PKG_CONFIG NAMES pkg-config pkgconf)
if(PKG_CONFIG)
  file(GLOB_RECURSE pc ${WORK_DIR}/tree/*/ddprun.pc)
  cmake_path(GET pc PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  run("${VERSION}" ${PKG_CONFIG} --modversion ddprun)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ddprun OUTPUT_VARIABLE words
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${words}")
  run("" ${CC} ${flags} ${EXAMPLES_DIR}/c/pi.c -o ${WORK_DIR}/pi ${words})
  run("rank 1 of 2: pi is about" ${ddprun} --standalone --nproc-per-node 2 ${WORK_DIR}/pi 100)
else()
  message("pkg-config is not installed: ddprun.pc was not tried")
endif()

# systemd looks for the program in the folders that it knows: the unit has no path to replace.
file(READ ${WORK_DIR}/tree/lib/systemd/system/ddprun-rdzvd.service unit)
if(NOT unit MATCHES "ExecStart=ddprun-rdzvd --bind")
  message(FATAL_ERROR "the unit does not start ddprun-rdzvd:\n${unit}")
endif()

find_program(PYTHON python3)
file(GLOB_RECURSE module ${WORK_DIR}/tree/*/ddprun/python/ddprun/__init__.py)
cmake_path(GET module PARENT_PATH package)
cmake_path(GET package PARENT_PATH place)
if(PYTHON)
  run("^ddprun ${VERSION}" ${CMAKE_COMMAND} -E env PYTHONPATH=${place}
    ${PYTHON} -m ddprun --version)
  run("linked: True" ${CMAKE_COMMAND} -E env PYTHONPATH=${place} ${ddprun} --standalone --no-python
    ${PYTHON} -c "import ddprun\nprint('linked:', ddprun.step_done(1))")
endif()
