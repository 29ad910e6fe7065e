# What `cmake --install` and the wheel carry: headers, the host where it is built, a CMake
# package, and files for pkg-config. Included last, when all targets are there. Every path
# is relative to the file that holds it, so that an installation can be moved.
include(CMakePackageConfigHelpers)

if(jaxc_is_wheel) # `python -m jaxc --include` and --cmake print these
  set(include_dir jaxc/include)
  set(library_dir jaxc/lib)
  set(program_dir ${SKBUILD_SCRIPTS_DIR})
  set(cmake_dir jaxc/cmake)
else()
  include(GNUInstallDirs)
  set(include_dir ${CMAKE_INSTALL_INCLUDEDIR})
  set(library_dir ${CMAKE_INSTALL_LIBDIR})
  set(program_dir ${CMAKE_INSTALL_BINDIR})
  set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/jaxc)
endif()

install(DIRECTORY include/jaxc DESTINATION ${include_dir} FILES_MATCHING PATTERN "*.h")
install(TARGETS jaxc EXPORT jaxcTargets INCLUDES DESTINATION ${include_dir})
set(jaxc_has_host OFF)
if(TARGET jaxc_host)
  set(jaxc_has_host ON)
  set_target_properties(jaxc_host PROPERTIES EXPORT_NAME host)
  install(TARGETS jaxc_host EXPORT jaxcTargets
          ARCHIVE DESTINATION ${library_dir}
          LIBRARY DESTINATION ${library_dir}
          INCLUDES DESTINATION ${include_dir})
endif()
if(TARGET jaxc-run)
  install(TARGETS jaxc-run RUNTIME DESTINATION ${program_dir})
endif()

# Headers alone serve every architecture.
set(any_architecture ARCH_INDEPENDENT)
if(jaxc_has_host)
  set(any_architecture)
endif()
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/jaxcConfig.cmake.in ${PROJECT_BINARY_DIR}/jaxcConfig.cmake
  INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/jaxcConfigVersion.cmake
  COMPATIBILITY ${compatibility} ${any_architecture})
install(FILES ${PROJECT_BINARY_DIR}/jaxcConfig.cmake
              ${PROJECT_BINARY_DIR}/jaxcConfigVersion.cmake
        DESTINATION ${cmake_dir})
install(EXPORT jaxcTargets NAMESPACE jaxc:: DESTINATION ${cmake_dir})

if(NOT jaxc_is_wheel)
  # Relative to the .pc file, unless a packager gave absolute folders.
  set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH jaxc_pc_include ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
       ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  set(jaxc_pc_include "\${pcfiledir}/${jaxc_pc_include}")
  if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(jaxc_pc_include ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  endif()
  set(jaxc_pc_library "\${pcfiledir}/..")
  set(packages jaxc)
  if(jaxc_has_host)
    list(APPEND packages jaxc_host)
  endif()
  foreach(package IN LISTS packages)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in
                   ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${pc_dir})
  endforeach()
endif()
