// Made by `trueup fingerprint layout.toml --emit c`. Edit the layout, not this file.
//
// For C++14 and CUDA (no header is included, so any device compiler takes it) the fingerprint is
// computed by the compiler from the lists below; if they are changed by hand, the assertion at the
// end stops the build. C gets the constants alone. Compare and copy the fingerprint as 32-bit words,
// never as floats.
#ifndef TRUEUP_ISV_LAYOUT_H
#define TRUEUP_ISV_LAYOUT_H

enum {
  ISV_TOTAL = 87,
  ISV_ALIGN_BYTES = 256,
  ISV_TILE_PAD_FLOATS = 0,
  SLOT_LEARNING_HEALTH = 0,
  LENGTH_LEARNING_HEALTH = 1,
  SLOT_EPOCH_IDX = 1,
  LENGTH_EPOCH_IDX = 1,
  SLOT_TOTAL_EPOCHS = 2,
  LENGTH_TOTAL_EPOCHS = 1,
  SLOT_EPSILON_EFF = 3,
  LENGTH_EPSILON_EFF = 1,
  SLOT_TAU_EFF = 4,
  LENGTH_TAU_EFF = 1,
  SLOT_KELLY_CAP_EFF = 5,
  LENGTH_KELLY_CAP_EFF = 1,
  SLOT_FOLD_WARMUP_FACTOR = 6,
  LENGTH_FOLD_WARMUP_FACTOR = 1,
  SLOT_H_S2_RMS_EMA = 7,
  LENGTH_H_S2_RMS_EMA = 1,
  SLOT_STATE_KL_AMP = 8,
  LENGTH_STATE_KL_AMP = 1,
  SLOT_RESERVED_09 = 9,
  LENGTH_RESERVED_09 = 1,
  SLOT_SEED_FRACTION_EMA = 10,
  LENGTH_SEED_FRACTION_EMA = 1,
  SLOT_READINESS_EMA = 11,
  LENGTH_READINESS_EMA = 1,
  SLOT_CQL_ALPHA = 12,
  LENGTH_CQL_ALPHA = 1,
  SLOT_CONVICTION_FLOOR = 13,
  LENGTH_CONVICTION_FLOOR = 1,
  SLOT_GRAD_BALANCE_DIR = 14,
  LENGTH_GRAD_BALANCE_DIR = 1,
  SLOT_GRAD_BALANCE_MAG = 15,
  LENGTH_GRAD_BALANCE_MAG = 1,
  SLOT_GRAD_BALANCE_ORD = 16,
  LENGTH_GRAD_BALANCE_ORD = 1,
  SLOT_GRAD_BALANCE_URG = 17,
  LENGTH_GRAD_BALANCE_URG = 1,
  SLOT_RESERVED_18 = 18,
  LENGTH_RESERVED_18 = 25,
  SLOT_GAMMA_DIR_EFF = 43,
  LENGTH_GAMMA_DIR_EFF = 1,
  SLOT_GAMMA_MAG_EFF = 44,
  LENGTH_GAMMA_MAG_EFF = 1,
  SLOT_GAMMA_ORD_EFF = 45,
  LENGTH_GAMMA_ORD_EFF = 1,
  SLOT_GAMMA_URG_EFF = 46,
  LENGTH_GAMMA_URG_EFF = 1,
  SLOT_RESERVED_47 = 47,
  LENGTH_RESERVED_47 = 2,
  SLOT_PLAN_THRESHOLD = 49,
  LENGTH_PLAN_THRESHOLD = 1,
  SLOT_Q_QUANTILE = 50,
  LENGTH_Q_QUANTILE = 8,
  SLOT_RESERVED_58 = 58,
  LENGTH_RESERVED_58 = 5,
  SLOT_REWARD_TRAIL_EMA = 63,
  LENGTH_REWARD_TRAIL_EMA = 1,
  SLOT_REWARD_MICRO_EMA = 64,
  LENGTH_REWARD_MICRO_EMA = 1,
  SLOT_REWARD_COMPONENT_2_EMA = 65,
  LENGTH_REWARD_COMPONENT_2_EMA = 1,
  SLOT_REWARD_COMPONENT_3_EMA = 66,
  LENGTH_REWARD_COMPONENT_3_EMA = 1,
  SLOT_REWARD_COMPONENT_4_EMA = 67,
  LENGTH_REWARD_COMPONENT_4_EMA = 1,
  SLOT_REWARD_BONUS_EMA = 68,
  LENGTH_REWARD_BONUS_EMA = 1,
  SLOT_RESERVED_69 = 69,
  LENGTH_RESERVED_69 = 16,
  SLOT_LAYOUT_FINGERPRINT = 85,
  LENGTH_LAYOUT_FINGERPRINT = 2,
};

#define ISV_TOTAL_PARAMS 0ULL
#define ISV_TOTAL_PADDED_BYTES 0ULL
#define ISV_FINGERPRINT 0x0c5dbfadd85d4fb8ULL
#define ISV_FINGERPRINT_LANE0 0xd85d4fb8U
#define ISV_FINGERPRINT_LANE1 0x0c5dbfadU

#ifdef __cplusplus
#ifdef __CUDACC__
#define ISV_LAYOUT_FUNCTION __host__ __device__ constexpr
#else
#define ISV_LAYOUT_FUNCTION constexpr
#endif

namespace isv_layout {

typedef unsigned long long Word;

struct Slot {
  const char* name;
  Word index, length;
};

struct Tensor {
  const char* name;
  Word numel, offset_bytes;
};

constexpr Slot kSlots[] = {
    {"LEARNING_HEALTH", 0, 1},
    {"EPOCH_IDX", 1, 1},
    {"TOTAL_EPOCHS", 2, 1},
    {"EPSILON_EFF", 3, 1},
    {"TAU_EFF", 4, 1},
    {"KELLY_CAP_EFF", 5, 1},
    {"FOLD_WARMUP_FACTOR", 6, 1},
    {"H_S2_RMS_EMA", 7, 1},
    {"STATE_KL_AMP", 8, 1},
    {"RESERVED_09", 9, 1},
    {"SEED_FRACTION_EMA", 10, 1},
    {"READINESS_EMA", 11, 1},
    {"CQL_ALPHA", 12, 1},
    {"CONVICTION_FLOOR", 13, 1},
    {"GRAD_BALANCE_DIR", 14, 1},
    {"GRAD_BALANCE_MAG", 15, 1},
    {"GRAD_BALANCE_ORD", 16, 1},
    {"GRAD_BALANCE_URG", 17, 1},
    {"RESERVED_18", 18, 25},
    {"GAMMA_DIR_EFF", 43, 1},
    {"GAMMA_MAG_EFF", 44, 1},
    {"GAMMA_ORD_EFF", 45, 1},
    {"GAMMA_URG_EFF", 46, 1},
    {"RESERVED_47", 47, 2},
    {"PLAN_THRESHOLD", 49, 1},
    {"Q_QUANTILE", 50, 8},
    {"RESERVED_58", 58, 5},
    {"REWARD_TRAIL_EMA", 63, 1},
    {"REWARD_MICRO_EMA", 64, 1},
    {"REWARD_COMPONENT_2_EMA", 65, 1},
    {"REWARD_COMPONENT_3_EMA", 66, 1},
    {"REWARD_COMPONENT_4_EMA", 67, 1},
    {"REWARD_BONUS_EMA", 68, 1},
    {"RESERVED_69", 69, 16},
    {"LAYOUT_FINGERPRINT", 85, 2},
};
constexpr Word kSlotCount = 35;

// One entry more than there are tensors: an array cannot be empty.
constexpr Tensor kTensors[] = {
    {"", 0, 0},
};
constexpr Word kTensorCount = 0;

ISV_LAYOUT_FUNCTION Word byte(Word h, char c) {
  return (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
}

ISV_LAYOUT_FUNCTION Word text(Word h, const char* s) {
  for (; *s; ++s) h = byte(h, *s);
  return h;
}

ISV_LAYOUT_FUNCTION Word number(Word h, Word n) {
  Word unit = 1;
  while (n / unit >= 10) unit *= 10;
  for (; unit > 0; unit /= 10) h = byte(h, static_cast<char>('0' + n / unit % 10));
  return h;
}

ISV_LAYOUT_FUNCTION Word line(Word h, char mark, const char* name, Word first, Word second) {
  h = byte(byte(h, mark), '|');
  h = byte(text(h, name), '|');
  h = byte(number(h, first), '|');
  return byte(number(h, second), '\n');
}

ISV_LAYOUT_FUNCTION Word fingerprint() {
  Word h = 0xcbf29ce484222325ULL;
  for (Word i = 0; i != kSlotCount; ++i) {
    h = line(h, 'S', kSlots[i].name, kSlots[i].index, kSlots[i].length);
  }
  for (Word k = 0; k != kTensorCount; ++k) {
    h = line(h, 'P', kTensors[k].name, k, kTensors[k].numel);
  }
  h = byte(number(text(h, "T|"), ISV_TOTAL), '|');
  h = byte(number(h, kTensorCount), '|');
  h = byte(number(h, ISV_ALIGN_BYTES), '|');
  return byte(number(h, ISV_TILE_PAD_FLOATS), '\n');
}

constexpr Word kFingerprint = fingerprint();
constexpr unsigned kFingerprintLanes[2] = {static_cast<unsigned>(kFingerprint),
                                           static_cast<unsigned>(kFingerprint >> 32)};

static_assert(kFingerprint == ISV_FINGERPRINT, "the lists are not those of the layout");
static_assert(kFingerprintLanes[0] == ISV_FINGERPRINT_LANE0, "the low half is the first lane");

}  // namespace isv_layout

#undef ISV_LAYOUT_FUNCTION
#endif  // __cplusplus

#endif  // TRUEUP_ISV_LAYOUT_H
