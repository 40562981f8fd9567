# `cpack` makes a Debian package of whatever `cmake --install` installs; scripts/release calls it.
# cmake/debian/finish.cmake brings the folder into the form that Debian's policy asks for.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
  GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/finish.cmake)
set(CPACK_PACKAGE_CONTACT "the ddprun authors <maintainers@ddprun.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "launcher for distributed PyTorch training")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"ddprun starts one worker per GPU or CPU, gives each a rank and a store for
the rendezvous, supervises all of them, and when one fails restarts the group
or prints one report. It accepts the command lines of torchrun, and needs
neither PyTorch nor Python itself.

ddprun-rdzvd coordinates runs on a host without workers. Its service is
neither enabled nor started when the package is installed.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# OpenSSL is loaded when a run uses TLS, so shlibdeps does not see it.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, libssl3 | libssl3t64")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/postinst
  ${PROJECT_SOURCE_DIR}/cmake/debian/prerm ${PROJECT_SOURCE_DIR}/cmake/debian/postrm)
include(CPack)
