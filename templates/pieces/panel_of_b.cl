//@hole B_POINTER
const __global float* w = b + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;
//@end
