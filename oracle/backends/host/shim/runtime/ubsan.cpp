// The entry points that code built with -fsanitize=undefined calls, so that each finding becomes a
// report of ours. The layouts are the compilers' published interface.
#include <stdio.h>
#include <string.h>

#include "runtime.h"

namespace {

struct Site {
  const char* file;
  uint32_t line, column;
};
struct Type {
  uint16_t kind, info;  // kind 0: integer, 1: floating point
  char name[1];
};
struct AtSite { Site site; };
struct WithType { Site site; const Type* type; };
struct WithTwoTypes { Site site; const Type *first, *second; };
struct Mismatch { Site site; const Type* type; uint8_t log_alignment, access; };

using Value = uintptr_t;

struct Text { char text[96]; };

Text show(const Type* type, Value value) {
  Text out;
  const unsigned bits = type->kind == 0 ? 1u << (type->info >> 1) : type->info;
  if (type->kind == 0 && bits <= 64) {
    const int unused = 64 - int(bits);
    if (type->info & 1)
      snprintf(out.text, sizeof out.text, "%lld", (long long)(uint64_t(value) << unused) >> unused);
    else
      snprintf(out.text, sizeof out.text, "%llu", (unsigned long long)value);
  } else if (type->kind == 1 && bits == 32) {
    float number;
    memcpy(&number, &value, sizeof number);
    snprintf(out.text, sizeof out.text, "%.9g", double(number));
  } else if (type->kind == 1 && bits == 64) {
    double number;
    memcpy(&number, &value, sizeof number);
    snprintf(out.text, sizeof out.text, "%.17g", number);
  } else {
    snprintf(out.text, sizeof out.text, "a value");
  }
  return out;
}

// One report for each place: the first value that went wrong there.
bool reported(cuhost::Kind kind, const Site& site) {
  for (uint64_t i = 0; i < *cuhost::options->report_count; ++i) {
    const cuhost::Report& report = cuhost::options->reports[i];
    if (report.kind == kind && report.line == int(site.line) &&
        report.column == int(site.column) && strcmp(report.file, site.file) == 0)
      return true;
  }
  return false;
}

void report(cuhost::Kind kind, const Site& site, const void* pc, const char* message,
            const void* address = nullptr) {
  if (!cuhost::options || reported(kind, site)) return;
  cuhost::Report* out = cuhost::new_report(kind, int(site.line), site.file);
  if (!out) return;
  out->column = int(site.column);
  out->pc = reinterpret_cast<uint64_t>(pc) - 1;
  out->address = reinterpret_cast<uint64_t>(address);
  snprintf(out->message, sizeof out->message, "%s", message);
}

#define CALLER __builtin_return_address(0)

void overflow(const WithType* data, Value a, Value b, const char* sign, const void* pc) {
  char text[320];
  snprintf(text, sizeof text, "integer overflow: %s %s %s cannot be represented in type %s",
           show(data->type, a).text, sign, show(data->type, b).text, data->type->name);
  report(cuhost::UNDEFINED, data->site, pc, text);
}

const char* const ACCESS[] = {"load of",
                              "store to",
                              "reference binding to",
                              "member access within",
                              "member call on",
                              "constructor call on",
                              "downcast of",
                              "downcast of",
                              "upcast of",
                              "cast to virtual base of"};

}  // namespace

extern "C" {

void __ubsan_handle_add_overflow(WithType* data, Value a, Value b) {
  overflow(data, a, b, "+", CALLER);
}
void __ubsan_handle_sub_overflow(WithType* data, Value a, Value b) {
  overflow(data, a, b, "-", CALLER);
}
void __ubsan_handle_mul_overflow(WithType* data, Value a, Value b) {
  overflow(data, a, b, "*", CALLER);
}

void __ubsan_handle_negate_overflow(WithType* data, Value value) {
  char text[256];
  snprintf(text, sizeof text, "integer overflow: -(%s) cannot be represented in type %s",
           show(data->type, value).text, data->type->name);
  report(cuhost::UNDEFINED, data->site, CALLER, text);
}

// Ends the run: what follows would trap.
void __ubsan_handle_divrem_overflow(WithType* data, Value a, Value b) {
  char text[256];
  if (show(data->type, b).text[0] == '0')
    snprintf(text, sizeof text, "division by zero");
  else
    snprintf(text, sizeof text, "integer overflow: %s / %s cannot be represented in type %s",
             show(data->type, a).text, show(data->type, b).text, data->type->name);
  report(cuhost::UNDEFINED, data->site, CALLER, text);
  if (data->type->kind == 0) cuhost::abandon();
}

void __ubsan_handle_shift_out_of_bounds(WithTwoTypes* data, Value value, Value by) {
  char text[320];
  snprintf(text, sizeof text, "shift of %s by %s places is not defined for type %s",
           show(data->first, value).text, show(data->second, by).text, data->first->name);
  report(cuhost::UNDEFINED, data->site, CALLER, text);
}

void __ubsan_handle_out_of_bounds(WithTwoTypes* data, Value index) {
  char text[256];
  snprintf(text, sizeof text, "index %s out of bounds for type %s",
           show(data->second, index).text, data->first->name);
  report(cuhost::OUT_OF_BOUNDS, data->site, CALLER, text);
}

void __ubsan_handle_float_cast_overflow(WithTwoTypes* data, Value value) {
  char text[256];
  snprintf(text, sizeof text, "%s is outside the range of type %s", show(data->first, value).text,
           data->second->name);
  report(cuhost::UNDEFINED, data->site, CALLER, text);
}

void __ubsan_handle_load_invalid_value(WithType* data, Value value) {
  char text[256];
  snprintf(text, sizeof text, "load of value %s, which is not valid for type %s",
           show(data->type, value).text, data->type->name);
  report(cuhost::UNDEFINED, data->site, CALLER, text);
}

// Null and misaligned accesses end the run: the next instruction may trap.
void __ubsan_handle_type_mismatch_v1(Mismatch* data, Value pointer) {
  const char* access = ACCESS[data->access < 10 ? data->access : 0];
  const uintptr_t alignment = uintptr_t(1) << data->log_alignment;
  char text[320];
  if (!pointer) {
    snprintf(text, sizeof text, "%s a null pointer of type %s", access, data->type->name);
    report(cuhost::UNDEFINED, data->site, CALLER, text);
    cuhost::abandon();
  }
  const void* address = reinterpret_cast<const void*>(pointer);
  if (pointer & (alignment - 1)) {
    snprintf(text, sizeof text, "%s a misaligned address for type %s, which requires %llu byte "
             "alignment", access, data->type->name, (unsigned long long)alignment);
    report(cuhost::MISALIGNED, data->site, CALLER, text, address);
    cuhost::abandon();
  }
  snprintf(text, sizeof text, "%s an address with no room for an object of type %s", access,
           data->type->name);
  report(cuhost::OUT_OF_BOUNDS, data->site, CALLER, text, address);
}

void __ubsan_handle_pointer_overflow(AtSite* data, Value base, Value result) {
  report(cuhost::UNDEFINED, data->site, CALLER,
         base && result ? "pointer arithmetic leaves the address space"
                        : "pointer arithmetic on a null pointer");
}

void __ubsan_handle_vla_bound_not_positive(WithType* data, Value) {
  report(cuhost::UNDEFINED, data->site, CALLER, "an array's length is not positive");
}
void __ubsan_handle_nonnull_arg(AtSite* data) {
  report(cuhost::UNDEFINED, data->site, CALLER, "null passed where null is not allowed");
}
void __ubsan_handle_nonnull_return_v1(AtSite*, Site* site) {
  report(cuhost::UNDEFINED, *site, CALLER, "null returned where null is not allowed");
}
void __ubsan_handle_invalid_builtin(AtSite* data) {
  report(cuhost::UNDEFINED, data->site, CALLER, "zero passed to a bit-counting builtin");
}
void __ubsan_handle_builtin_unreachable(AtSite* data) {
  report(cuhost::UNDEFINED, data->site, CALLER, "reached what the code calls unreachable");
  cuhost::abandon();
}
void __ubsan_handle_missing_return(AtSite* data) {
  report(cuhost::UNDEFINED, data->site, CALLER, "a function ended without returning its value");
  cuhost::abandon();
}

}  // extern "C"
