#include "memory/kv_slot_bitmap_algorithm.h"

namespace sapwood {

template class BasicKvSlotBitmap<std::atomic>;

}  // namespace sapwood
