// SPDX-License-Identifier: MIT
#include "core/memory/block_pool.h"

#include <algorithm>
#include <bit>
#include <new>

namespace ciuic::core {

/// Stands in front of a block's memory.
struct alignas(BlockPool::kAlignment) BlockPool::Block {
  size_t size;    // with this header
  Block* before;  // by address
  bool is_free;
  Block* next_free;
  Block* previous_free;
};

BlockPool::SizeClass BlockPool::class_of(size_t units) {
  if (units < kParts) {
    return {0, static_cast<int>(units)};
  }
  const int power = std::bit_width(units) - std::bit_width(unsigned{kParts}) + 1;
  return {power, static_cast<int>(units >> (power - 1)) - kParts};
}

/// The lowest class of which every block is large enough.
BlockPool::SizeClass BlockPool::class_that_fits(size_t units) {
  const int power = class_of(units).power;
  return class_of(power == 0 ? units : units + (size_t{1} << (power - 1)) - 1);
}

void* BlockPool::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const size_t size = (bytes + sizeof(Block) + kAlignment - 1) / kAlignment * kAlignment;
  Block* block = take_free(size);
  block = block != nullptr ? block : grow(size);
  if (block == nullptr) {
    return nullptr;
  }
  split(block, size);
  block->is_free = false;
  ++counts_.allocations;
  counts_.allocated_bytes += static_cast<int64_t>(block->size);
  counts_.live_bytes += static_cast<int64_t>(block->size);
  counts_.peak_live_bytes = std::max(counts_.peak_live_bytes, counts_.live_bytes);
  return block + 1;
}

void BlockPool::release(void* data) {
  if (data == nullptr) {
    return;
  }
  const std::lock_guard lock(mutex_);
  Block* block = static_cast<Block*>(data) - 1;
  ++counts_.frees;
  counts_.live_bytes -= static_cast<int64_t>(block->size);
  if (Block* next = next_of(block); next != nullptr && next->is_free) {
    remove(next);
    block = joined(block, next);
  }
  if (Block* before = block->before; before != nullptr && before->is_free) {
    remove(before);
    block = joined(before, block);
  }
  insert(block);
}

BlockPool::Counts BlockPool::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

BlockPool::Block* BlockPool::take_free(size_t size) {
  SizeClass c = class_that_fits(size / kAlignment);
  if (c.power >= kPowers) {
    return nullptr;
  }
  uint32_t parts = parts_[static_cast<size_t>(c.power)] & (~uint32_t{0} << c.part);
  if (parts == 0) {
    const uint64_t powers = powers_ & (~uint64_t{1} << c.power);
    if (powers == 0) {
      return nullptr;
    }
    c.power = std::countr_zero(powers);
    parts = parts_[static_cast<size_t>(c.power)];
  }
  Block* block = lists_[static_cast<size_t>(c.power)][static_cast<size_t>(std::countr_zero(parts))];
  remove(block);
  return block;
}

/// A block at the region's end, made of new memory and of the free block before it, which may do alone:
/// take_free looks at classes of which every block is large enough.
BlockPool::Block* BlockPool::grow(size_t size) {
  const bool is_open = last_ != nullptr && last_->is_free;
  if (is_open && last_->size >= size) {
    remove(last_);
    return last_;
  }
  std::byte* end = region_.begin() + region_.size();
  const size_t more = region_.grow(size - (is_open ? last_->size : 0));
  if (more == 0) {
    return nullptr;
  }
  ++counts_.growths;
  counts_.held_bytes += static_cast<int64_t>(more);
  if (is_open) {
    remove(last_);
    last_->size += more;
  } else {
    last_ = new (end) Block{more, last_, false, nullptr, nullptr};
  }
  return last_;
}

/// Leaves `size` bytes in `block`; what is over becomes a free block.
void BlockPool::split(Block* block, size_t size) {
  const size_t rest = block->size - size;
  if (rest <= sizeof(Block)) {
    return;
  }
  Block* next = next_of(block);
  block->size = size;
  auto* free =
      new (reinterpret_cast<std::byte*>(block) + size) Block{rest, block, false, nullptr, nullptr};
  (next != nullptr ? next->before : last_) = free;
  insert(free);
}

BlockPool::Block* BlockPool::joined(Block* left, Block* right) {
  Block* next = next_of(right);
  left->size += right->size;
  (next != nullptr ? next->before : last_) = left;
  return left;
}

void BlockPool::insert(Block* block) {
  const auto [power, part] = class_of(block->size / kAlignment);
  Block*& head = lists_[static_cast<size_t>(power)][static_cast<size_t>(part)];
  block->is_free = true;
  block->previous_free = nullptr;
  block->next_free = head;
  if (head != nullptr) {
    head->previous_free = block;
  }
  head = block;
  powers_ |= uint64_t{1} << power;
  parts_[static_cast<size_t>(power)] |= uint32_t{1} << part;
}

void BlockPool::remove(Block* block) {
  const auto [power, part] = class_of(block->size / kAlignment);
  Block*& head = lists_[static_cast<size_t>(power)][static_cast<size_t>(part)];
  (block->previous_free != nullptr ? block->previous_free->next_free : head) = block->next_free;
  if (block->next_free != nullptr) {
    block->next_free->previous_free = block->previous_free;
  }
  block->is_free = false;
  if (head == nullptr) {
    uint32_t& parts = parts_[static_cast<size_t>(power)];
    parts &= ~(uint32_t{1} << part);
    powers_ &= parts == 0 ? ~(uint64_t{1} << power) : ~uint64_t{0};
  }
}

BlockPool::Block* BlockPool::next_of(Block* block) const {
  return block == last_
             ? nullptr
             : reinterpret_cast<Block*>(reinterpret_cast<std::byte*>(block) + block->size);
}

}  // namespace ciuic::core
