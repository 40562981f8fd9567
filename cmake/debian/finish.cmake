# Run by CPack on the installed tree before it makes the Debian package of it.
set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
set(overrides ${usr}/share/lintian/overrides)
set(doc ${usr}/share/doc/${CPACK_PACKAGE_NAME})

function(compress)
  execute_process(COMMAND gzip --best --no-name --force ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(MAKE_DIRECTORY ${overrides})
# Debian's zsh does not look for the completions of packages in site-functions.
if(EXISTS ${usr}/share/zsh/site-functions)
  file(RENAME ${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)
endif()
file(REMOVE ${doc}/LICENSE)  # Debian calls it copyright
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/copyright ${doc}/copyright)
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/lintian-overrides ${overrides}/ddprun)
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)  # follows SOURCE_DATE_EPOCH
file(WRITE ${doc}/changelog "ddprun (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}; NEWS.md lists the changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/../../CHANGELOG.md ${doc}/NEWS.md)
compress(${doc}/changelog ${doc}/NEWS.md)
file(CHMOD ${overrides}/ddprun ${doc}/copyright ${doc}/changelog.gz ${doc}/NEWS.md.gz
  PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
file(GLOB_RECURSE manuals ${usr}/share/man/*.[1-8])
if(manuals)
  compress(${manuals})
endif()
