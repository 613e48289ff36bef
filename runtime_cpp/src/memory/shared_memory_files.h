// Descriptors of shared memory: making them, and looking hard at those of others.
#pragma once

#include <cstddef>

#include "base/descriptor.h"
#include "base/status.h"
#include "memory/memory_block.h"
#include "memory/memory_kind.h"

namespace sapwood {

// `bytes` must be whole pages. Fresh memory is zero.
Result<Descriptor> make_memfd(size_t bytes);     // sealed: it neither grows nor shrinks
Result<Descriptor> make_udmabuf(size_t bytes);   // a dma-buf
Result<Descriptor> make_dma_heap(size_t bytes);  // a dma-buf

// What an imported descriptor is: kDmaBuf or kMemfd, when it is one of them, holds at least
// `bytes`, can be written and cannot shrink. Else what is wrong with it.
Result<MemoryKind> check_shared_memory(int fd, size_t bytes);

// DMA_BUF_IOCTL_SYNC: `end` closes what a call without it opened.
Status sync_dma_buf(int fd, CpuAccess access, bool end);

// `what`: the error that `error` (an errno) stands for. kExhausted when something has run out.
Status memory_error(const char* what, int error);

}  // namespace sapwood
