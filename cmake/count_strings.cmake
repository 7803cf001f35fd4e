# Makes FILE, which flatc wrote, count the texts of the lists that it verifies: see runtime/package/verify/string_count.h.
file(READ ${FILE} text)
string(REPLACE "verifier.VerifyVectorOfStrings(" "::oclc::package::verify_strings(verifier, " text "${text}")
string(REPLACE "#include \"flatbuffers/flatbuffers.h\"" "#include \"flatbuffers/flatbuffers.h\"\n#include \"runtime/package/verify/string_count.h\"" text "${text}")
file(WRITE ${FILE} "${text}")
