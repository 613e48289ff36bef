// sums[i] = left[i] + right[i], 256 numbers a workgroup: the smallest limit that drivers have.
#version 450

layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer Left { float left[]; };
layout(std430, binding = 1) readonly buffer Right { float right[]; };
layout(std430, binding = 2) writeonly buffer Sums { float sums[]; };
layout(push_constant) uniform Sizes { uint count; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < count) sums[i] = left[i] + right[i];
}
