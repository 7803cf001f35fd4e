//@hole EPILOGUE_VALUE
v *= 2.0f;
//@end
results[j] = v;
