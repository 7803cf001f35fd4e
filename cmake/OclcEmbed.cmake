# oclc_embed_templates(TARGET): every .cl of templates/ becomes a row of `oclc::template_texts()` (compiler/codegen/text/template_table.h).
function(oclc_embed_templates target)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/templates/*.cl)
  set(out ${PROJECT_BINARY_DIR}/generated/template_table.cpp)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DFOLDER=${PROJECT_SOURCE_DIR}/templates "-DFILES=${files}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
