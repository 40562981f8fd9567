# Tests that are Python scripts; those against a real PyTorch are labelled `torch`. Without an
# interpreter they report "skipped" with the reason. 2.11.0 is the pinned release, NEXT the
# newest one that the tests know.
foreach(pair "DDPRUN_PYTHON_TORCH=.venv" "DDPRUN_PYTHON_TORCH_NEXT=.venv-2.15")
  string(REGEX MATCH "^([^=]+)=(.+)$" matched ${pair})
  set(variable ${CMAKE_MATCH_1})
  set(candidate ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_2}/bin/python)
  if(NOT EXISTS ${candidate})
    set(candidate "")
  endif()
  if("${${variable}}" STREQUAL "")  # the environment may have been made since the last time
    unset(${variable} CACHE)
  endif()
  set(${variable} "${candidate}" CACHE FILEPATH "Python interpreter with torch, for tests")
endforeach()

find_program(DDPRUN_PYTHON3 python3 DOC "Python 3 without torch, for tests of programs")
# A shim, as pyenv has it, starts a shell before the interpreter, for each test and for each worker
# in Python.
set(behind_shim "")
if(DDPRUN_PYTHON3)
  execute_process(COMMAND ${DDPRUN_PYTHON3} -c "import sys; print(sys.executable)"
    OUTPUT_VARIABLE interpreter OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT interpreter STREQUAL DDPRUN_PYTHON3)
    set(DDPRUN_PYTHON3 ${interpreter})
    cmake_path(GET interpreter PARENT_PATH behind_shim)
  endif()
endif()

# ddprun_script_test(NAME script.py [ARGS ...] [TIMEOUT seconds] [COST seconds] [LABELS ...]): any
# Python 3 runs the script, which skips itself with exit code 77. COST: it takes long; CTest starts
# such a test before others, so that none runs alone at the end.
function(ddprun_script_test name script)
  cmake_parse_arguments(TEST "" "PYTHON;ABSENT;TIMEOUT;COST" "ARGS;LABELS" ${ARGN})
  if(NOT TEST_ABSENT)
    set(TEST_PYTHON ${DDPRUN_PYTHON3})
    set(TEST_ABSENT "no python3")
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  if(TEST_PYTHON)
    add_test(NAME ${name} COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${TEST_ARGS})
  else()
    add_test(NAME ${name} COMMAND sh -c "echo '${TEST_ABSENT}'; exit 77")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT}
    SKIP_RETURN_CODE 77)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${DDPRUN_TEST_TURN})
  if(TEST_COST)
    set_property(TEST ${name} PROPERTY COST ${TEST_COST})
  endif()
  if(behind_shim AND TEST_PYTHON STREQUAL DDPRUN_PYTHON3)
    set_property(TEST ${name} PROPERTY ENVIRONMENT_MODIFICATION
      "PATH=path_list_prepend:${behind_shim}")
  endif()
endfunction()

# ddprun_python_test(NAME script.py PYTHON interpreter [ARGS ...] [TIMEOUT seconds] [LABELS ...]):
# the same with a Python that has torch.
function(ddprun_python_test name script)
  ddprun_script_test(${name} ${script} ${ARGN}
    ABSENT "no Python with torch: run scripts/setup --torch or set DDPRUN_PYTHON_TORCH")
  set_property(TEST ${name} APPEND PROPERTY LABELS torch)
endfunction()

# ddprun_parity_test(NAME script.py [ARGS ...] [TIMEOUT seconds] [LABELS ...]): the same with each
# torch, for what is compared with torch itself. Where the newest one is there, the pinned one is
# `long`: the releases differ in little, and torchrun takes seconds for each comparison.
function(ddprun_parity_test name script)
  foreach(interpreter DDPRUN_PYTHON_TORCH DDPRUN_PYTHON_TORCH_NEXT)
    ddprun_python_test("${name} (${interpreter})" ${script} ${ARGN} PYTHON ${${interpreter}})
  endforeach()
  if(DDPRUN_PYTHON_TORCH_NEXT)
    set_property(TEST "${name} (DDPRUN_PYTHON_TORCH)" APPEND PROPERTY LABELS long)
  endif()
endfunction()
