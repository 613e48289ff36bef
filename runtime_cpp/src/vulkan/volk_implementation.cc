// The loader of Vulkan's functions, compiled here once.
#define VOLK_IMPLEMENTATION
#include <volk.h>
