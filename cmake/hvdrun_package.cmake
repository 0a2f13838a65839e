# What a node or a submitting machine gets, as one Debian package: install() rules of the component hvdrun, and
# CPack. `cmake --build build --target hvdrun_deb` builds what the package has and then the package,
# build/hvdrun_VERSION-RELEASE_ARCH.deb; the target `package` builds all there is first.
# Not in it: petrv2 (it needs the libtorch of the wheel it was built with) and libhvdrun (a static library of
# this source tree).
if(HVDRUN_SANITIZE)
  return()
endif()
set(HVDRUN_PACKAGE_CONTACT "hvdrun maintainers <maintainers@hvdrun.example>" CACHE STRING
    "Maintainer field of the Debian package")
set(HVDRUN_PACKAGE_RELEASE 1 CACHE STRING "Release of the Debian package, behind the version")
set(deploy ${PROJECT_SOURCE_DIR}/deploy)
set(made ${PROJECT_BINARY_DIR}/package)

# packaged(FOLDER FILE... [NAME name]): files at an absolute place of the node.
function(hvdrun_packaged folder)
  cmake_parse_arguments(P "" "NAME" "" ${ARGN})
  set(rename)
  if(P_NAME)
    set(rename RENAME ${P_NAME})
  endif()
  install(FILES ${P_UNPARSED_ARGUMENTS} DESTINATION ${folder} ${rename} COMPONENT hvdrun)
endfunction()

set(programs hvdrun hvd-agent hvdctl)
if(TARGET hvd-exporter)
  list(APPEND programs hvd-exporter)
endif()
install(TARGETS ${programs} RUNTIME DESTINATION /usr/bin COMPONENT hvdrun)
hvdrun_packaged(/lib/systemd/system ${deploy}/systemd/hvd-agent.service ${deploy}/systemd/hvd-agent.socket
                ${deploy}/systemd/hvdrun.slice)
if(TARGET hvd-exporter)
  hvdrun_packaged(/lib/systemd/system ${deploy}/systemd/hvd-exporter.service)
endif()
hvdrun_packaged(/usr/lib/sysusers.d ${deploy}/systemd/sysusers.conf NAME hvdrun.conf)
hvdrun_packaged(/usr/lib/tmpfiles.d ${deploy}/systemd/tmpfiles.conf NAME hvdrun.conf)
hvdrun_packaged(/etc/hvdrun ${deploy}/agent.yaml)

# Documents. Debian wants man pages and the list of changes packed.
set(doc /usr/share/doc/hvdrun)
file(GLOB documents CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
list(FILTER documents EXCLUDE REGEX "/STATUS\\.md$")
hvdrun_packaged(${doc} ${PROJECT_SOURCE_DIR}/README.md ${documents} ${deploy}/debian/copyright)
install(DIRECTORY ${deploy}/examples DESTINATION ${doc} COMPONENT hvdrun)
file(MAKE_DIRECTORY ${made})
configure_file(${deploy}/debian/changelog.in ${made}/changelog.Debian @ONLY)
set(pages)
find_program(HVDRUN_HELP2MAN help2man)
if(HVDRUN_HELP2MAN)
  set(commands_of_hvdctl nodes jobs kill drain undrain "ca init" "ca issue" "ca renew" "ca list" "ca revoke")
  set(administrators_programs ${programs})
  list(REMOVE_ITEM administrators_programs hvdrun)
  foreach(program ${administrators_programs})
    set(page ${PROJECT_BINARY_DIR}/docs/man/${program}.8)
    add_custom_command(OUTPUT ${page}
      COMMAND ${deploy}/man/man_page.sh $<TARGET_FILE:${program}> ${page} ${commands_of_${program}}
      DEPENDS ${program} ${deploy}/man/man_page.sh ${deploy}/man/${program}.h2m VERBATIM)
    list(APPEND pages ${page})
  endforeach()
endif()
set(packed)
foreach(file ${PROJECT_BINARY_DIR}/docs/man/hvdrun.1 ${pages} ${made}/changelog.Debian ${PROJECT_SOURCE_DIR}/NEWS.md)
  get_filename_component(name ${file} NAME)
  string(REPLACE NEWS.md changelog name ${name})
  add_custom_command(OUTPUT ${made}/${name}.gz COMMAND gzip -9nc ${file} > ${made}/${name}.gz DEPENDS ${file})
  list(APPEND packed ${made}/${name}.gz)
  if(name MATCHES "\\.([18])$")
    hvdrun_packaged(/usr/share/man/man${CMAKE_MATCH_1} ${made}/${name}.gz)
  endif()
endforeach()
add_custom_target(hvdrun_package_files ALL DEPENDS ${packed})
add_dependencies(hvdrun_package_files hvdrun_docs)
# What a reader would see wrongly, groff warns of.
if(pages AND GROFF)
  add_test(NAME man_pages_test COMMAND sh -c
    "out=$(${GROFF} -man -ww -z \"$@\" 2>&1) && test -z \"$out\" || { echo \"$out\"; exit 1; }" sh ${pages})
  set_tests_properties(man_pages_test PROPERTIES LABELS unit TIMEOUT 30)
  add_dependencies(unit_tests hvdrun_package_files)
endif()
hvdrun_packaged(${doc} ${made}/changelog.gz ${made}/changelog.Debian.gz)
set(completion ${PROJECT_BINARY_DIR}/docs/completion)
hvdrun_packaged(/usr/share/bash-completion/completions ${completion}/hvdrun)
hvdrun_packaged(/usr/share/zsh/vendor-completions ${completion}/_hvdrun)
hvdrun_packaged(/usr/share/fish/vendor_completions.d ${completion}/hvdrun.fish)

# The licences of what is linked into the programs, as this system has them.
foreach(library libgrpc-dev libabsl-dev libssl-dev libprotobuf-dev libre2-dev libc-ares-dev libyaml-cpp-dev
                libfmt-dev nlohmann-json3-dev libexpected-dev zlib1g-dev libc6-dev
                libstdc++-12-dev)
  if(EXISTS /usr/share/doc/${library}/copyright)
    file(REAL_PATH /usr/share/doc/${library}/copyright licence)
    hvdrun_packaged(${doc}/copyrights ${licence} NAME ${library})
  endif()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hvdrun)
set(CPACK_PACKAGE_CONTACT "${HVDRUN_PACKAGE_CONTACT}")
set(CPACK_PACKAGING_INSTALL_PREFIX /)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};hvdrun;hvdrun;/")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${HVDRUN_PACKAGE_RELEASE})
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS systemd)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    "${deploy}/debian/postinst;${deploy}/debian/prerm;${deploy}/debian/postrm;${deploy}/debian/conffiles")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "launcher of jobs on GPU nodes, and its agent")
set(CPACK_PACKAGE_DESCRIPTION
"hvdrun starts one program on many GPU nodes, gives each process its rank,
brings its output back and ends all of them when one fails. hvd-agent is the
service that takes such jobs on a node without ssh, by TLS; hvdctl makes its
certificates and looks after the nodes; hvd-exporter gives metrics to
Prometheus.")
include(CPack)

add_custom_target(hvdrun_deb
  COMMAND ${CMAKE_CPACK_COMMAND} -G DEB --config ${PROJECT_BINARY_DIR}/CPackConfig.cmake
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR} USES_TERMINAL VERBATIM
  COMMENT "Debian package hvdrun")
add_dependencies(hvdrun_deb ${programs} hvdrun_package_files)
