# Tests against a real PyTorch, labelled `torch`. Without an interpreter they report "skipped" with
# the reason. 2.11.0 is the pinned release, NEXT the newest one that the tests know.
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

# ddprun_python_test(NAME script.py PYTHON interpreter [ARGS ...] [TIMEOUT seconds] [LABELS ...]):
# the script skips itself with exit code 77.
function(ddprun_python_test name script)
  cmake_parse_arguments(TEST "" "PYTHON;TIMEOUT" "ARGS;LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  if(TEST_PYTHON)
    add_test(NAME ${name} COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${TEST_ARGS})
  else()
    add_test(NAME ${name} COMMAND sh -c
      "echo 'no Python with torch: run scripts/setup --torch or set DDPRUN_PYTHON_TORCH'; exit 77")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "torch;${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT}
    SKIP_RETURN_CODE 77)
endfunction()
