// Integer intrinsics.
#pragma once

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }

inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32));
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)high << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> (4 * i) & 0xf;
    unsigned byte = unsigned(bytes >> (8 * (pick & 7))) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) << (shift < 32 ? shift : 32) >> 32);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) >> (shift < 32 ? shift : 32));
}

inline int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned((unsigned long long)a * b >> 32);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b) {
  const long long x = int(unsigned(a) << 8) >> 8, y = int(unsigned(b) << 8) >> 8;
  return int(unsigned(x * y));
}
inline unsigned __umul24(unsigned a, unsigned b) {
  return unsigned((unsigned long long)(a & 0xffffffu) * (b & 0xffffffu));
}
inline unsigned __sad(int a, int b, unsigned c) {
  const long long difference = (long long)a - b;
  return unsigned(difference < 0 ? -difference : difference) + c;
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline int __hadd(int a, int b) { return int((long long)a + b >> 1); }
inline int __rhadd(int a, int b) { return int((long long)a + b + 1 >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned((unsigned long long)a + b >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) {
  return unsigned((unsigned long long)a + b + 1 >> 1);
}

namespace cuhost {
template <class A, class B> int dot_bytes(unsigned a, unsigned b) {
  int sum = 0;
  for (int i = 0; i < 32; i += 8) sum += int(A(a >> i & 0xff)) * int(B(b >> i & 0xff));
  return sum;
}
}  // namespace cuhost
inline int __dp4a(int a, int b, int c) {
  return int(unsigned(cuhost::dot_bytes<signed char, signed char>(unsigned(a), unsigned(b))) +
             unsigned(c));
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return unsigned(cuhost::dot_bytes<unsigned char, unsigned char>(a, b)) + c;
}
