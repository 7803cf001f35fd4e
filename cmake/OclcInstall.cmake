# Install rules and the CMake package are added by the targets' own lists; nothing yet at top level.
