#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The oracle against Python: hashlib, zlib, exact fractions and plain arithmetic.

The oracle judges the software GPU; this judges the oracle, with inputs of its own.
"""
import base64
import ctypes
import datetime
import hashlib
import math
import os
import random
import struct
import unittest
import zlib
from fractions import Fraction

ORACLE = ctypes.CDLL(os.path.join(os.environ["BUILD"], "tests/programs/corpus/liboracle.so"))
ORACLE.corpus_find.restype = ctypes.c_void_p
ORACLE.corpus_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t]


def run(name, *args):
    """Calls a kernel; bytearrays are buffers, (format, value...) tuples are values."""
    kernel = ORACLE.corpus_find(name.encode())
    assert kernel, name
    keep, params = [], (ctypes.c_void_p * max(1, len(args)))()
    for i, arg in enumerate(args):
        if isinstance(arg, bytearray):
            buffer = (ctypes.c_char * len(arg)).from_buffer(arg)
            word = ctypes.c_void_p(ctypes.addressof(buffer))
            keep += [buffer, word]
            params[i] = ctypes.addressof(word)
        else:
            word = ctypes.create_string_buffer(struct.pack(*arg))
            keep.append(word)
            params[i] = ctypes.addressof(word)
    error = ctypes.create_string_buffer(400)
    if ORACLE.corpus_run(kernel, params, 0, error, 400) != 0:
        raise AssertionError(f"{name}: {error.value.decode()}")


def words(data, code):
    return list(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", bytes(data)))


def pack(values, code):
    return bytearray(struct.pack(f"<{len(values)}{code}", *values))


def rounded(x, mode, digits, low, high):
    """The Fraction x in a binary format of so many digits, exponents low to high; exact or directed."""
    if x == 0:
        return Fraction(0)
    e = abs(x.numerator).bit_length() - x.denominator.bit_length()
    if abs(x) < Fraction(2) ** e:
        e -= 1
    unit = Fraction(2) ** (max(e, low) - digits + 1)
    q = x / unit
    floor = math.floor(q)
    up = {"rd": False, "ru": q != floor, "rz": q < 0 and q != floor}.get(mode)
    if up is None:
        rest = q - floor
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2 == 1)
    r = (floor + up) * unit
    largest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** high
    if abs(r) > largest:
        to_infinity = mode == "rn" or (mode == "ru" and r > 0) or (mode == "rd" and r < 0)
        return (math.inf if r > 0 else -math.inf) if to_infinity else (largest if r > 0 else -largest)
    return r


def square_root(x, mode, digits):
    """Correctly rounded by an integer root with bits to spare; x > 0, no overflow or underflow."""
    shift = 2 * (digits + 4) + 400
    root = math.isqrt(x.numerator * x.denominator << 2 * shift)
    exact = root * root == x.numerator * x.denominator << 2 * shift
    value = Fraction(root, x.denominator << shift)
    if not exact:
        value += Fraction(1, x.denominator << (shift + 1))
    return rounded(value, mode, digits, -2000, 2000)


FORMATS = {"float": ("f", 24, -126, 127, "f"), "double": ("d", 53, -1022, 1023, "d")}


class Rounding(unittest.TestCase):
    def finite(self, code, count, seed):
        source, out = random.Random(seed), []
        size = struct.calcsize(code)
        while len(out) < count:
            x, = struct.unpack("<" + code, source.randbytes(size))
            if source.random() < 0.5:
                x = source.uniform(-4, 4)
                x, = struct.unpack("<" + code, struct.pack("<" + code, x))
            if math.isfinite(x) and x != 0:
                out.append(x)
        return out

    def check(self, kind, mode):
        code, digits, low, high, _ = FORMATS[kind]
        n = 1024
        a, b, c = (self.finite(code, n, zlib.crc32((kind + mode).encode()) + k) for k in range(3))
        out = bytearray(n * 7 * struct.calcsize(code))
        run(f"{kind}_rounded_{mode}", out, pack(a, code), pack(b, code), pack(c, code))
        got = words(out, code)
        for i in range(n):
            x, y, z = Fraction(a[i]), Fraction(b[i]), Fraction(c[i])
            expected = [rounded(v, mode, digits, low, high) for v in
                        (x + y, x - y, x * y, x / y, x * y + z, 1 / x)]
            expected.append(square_root(abs(y), mode, digits))
            for k, e in enumerate(expected):
                g = got[i * 7 + k]
                self.assertEqual(g if math.isinf(g) else Fraction(g), e, (kind, mode, k, a[i], b[i], c[i]))

    def test_every_operation_rounds_as_exact_fractions_do(self):
        for kind in FORMATS:
            for mode in ("rn", "rz", "ru", "rd"):
                self.check(kind, mode)

    def test_float_to_whole_saturates_and_rounds(self):
        values = self.finite("f", 1016, 5) + [math.inf, -math.inf, math.nan, 0.5, -0.5, 2.0**31, -(2.0**31), 2.0**63]
        towards = {"rn": lambda v: round(Fraction(v)), "rz": math.trunc, "ru": math.ceil, "rd": math.floor}
        for mode, whole in towards.items():
            out = bytearray(4096 * 8)
            run(f"convert_float_to_whole_{mode}", out, pack(values, "f"))
            got = words(out, "Q")
            for i, v in enumerate(values):
                for k, (low, high) in enumerate([(-2**31, 2**31 - 1), (0, 2**32 - 1), (-2**63, 2**63 - 1), (0, 2**64 - 1)]):
                    if math.isnan(v):
                        e = 0 if k < 2 else 2**63
                    elif math.isinf(v):
                        e = high if v > 0 else low
                    else:
                        e = min(max(whole(v), low), high)
                    self.assertEqual(got[i * 4 + k], e % (2**32 if k < 2 else 2**64), (mode, k, v))


class Programs(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(7)

    def test_sha256_is_hashlibs(self):
        data, out = bytearray(self.random.randbytes(64 * 50)), bytearray(64 * 32)
        run("sha256", out, data, ("i", 50))
        for i in range(64):
            digest = b"".join(struct.pack(">I", w) for w in words(out[i * 32:i * 32 + 32], "I"))
            self.assertEqual(digest, hashlib.sha256(data[i * 50:i * 50 + 50]).digest())

    def test_crc32_is_zlibs(self):
        for name, threads in (("crc32", 64), ("crc32_table", 128)):
            data, out = bytearray(self.random.randbytes(threads * 37)), bytearray(threads * 4)
            run(name, out, data, ("i", 37))
            self.assertEqual(words(out, "I"), [zlib.crc32(data[i * 37:i * 37 + 37]) for i in range(threads)])

    def test_base64_is_pythons(self):
        data, out = bytearray(self.random.randbytes(384)), bytearray(512)
        run("base64", out, data)
        self.assertEqual(bytes(out), base64.b64encode(bytes(data)))

    def test_mersenne_twister_is_pythons(self):
        seeds = [self.random.getrandbits(32) for _ in range(32)]
        out = bytearray(512 * 4)
        run("mersenne_twister", out, pack(seeds, "I"))
        got = words(out, "I")
        for i, seed in enumerate(seeds):
            state = [seed]
            for k in range(1, 624):
                state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + k) & 0xffffffff)
            python = random.Random()
            python.setstate((3, tuple(state) + (624,), None))
            numbers = [python.getrandbits(32) for _ in range(624)]
            self.assertEqual(got[i * 16:i * 16 + 16], [numbers[k * 39] for k in range(16)])

    def test_sorts_sort(self):
        data = [self.random.getrandbits(32) for _ in range(512)]
        buffer = pack(data, "I")
        run("bitonic_sort", buffer)
        self.assertEqual(words(buffer, "I"), sorted(data[:256]) + sorted(data[256:]))
        data = [self.random.randint(-10**9, 10**9) for _ in range(32 * 60)]
        buffer = pack(data, "i")
        run("quicksort", buffer, ("i", 60))
        for i in range(32):
            self.assertEqual(words(buffer, "i")[i * 60:i * 60 + 60], sorted(data[i * 60:i * 60 + 60]))

    def test_calendar_is_datetimes(self):
        days = [self.random.randint(-200000, 200000) for _ in range(256)]
        out = bytearray(768 * 4)
        run("calendar", out, pack(days, "i"))
        epoch = datetime.date(1970, 1, 1)
        for i, day in enumerate(days):
            date = epoch + datetime.timedelta(days=day)
            self.assertEqual(words(out, "i")[i * 3:i * 3 + 3], [date.year, date.month, date.day])

    def test_known_counts(self):
        total, sieve = bytearray(4), bytearray(2048)
        run("n_queens", total, ("i", 7))
        self.assertEqual(words(total, "I"), [40])
        run("prime_sieve", sieve, ("i", 2048))
        self.assertEqual([i for i in range(2048) if sieve[i]],
                         [i for i in range(2, 2048) if all(i % d for d in range(2, math.isqrt(i) + 1))])

    def test_whole_arithmetic(self):
        a = [self.random.getrandbits(64) for _ in range(1024)]
        b = [self.random.getrandbits(64) | 1 for _ in range(1024)]
        out = bytearray(4096 * 8)
        run("integer_multiply_high", out, pack(a, "Q"), pack(b, "Q"))
        signed = lambda v, n: (v & (2**n - 1)) - (2**n if v >> (n - 1) & 1 else 0)
        for i in range(1024):
            x, y = a[i], b[i]
            self.assertEqual(words(out, "Q")[i * 4:i * 4 + 4],
                             [(signed(x, 32) * signed(y, 32) >> 32) % 2**64, (x % 2**32) * (y % 2**32) >> 32,
                              (signed(x, 64) * signed(y, 64) >> 64) % 2**64, x * y >> 64])
        out = bytearray(256 * 8)
        run("integer_gcd", out, pack(a[:256], "Q"), pack(b[:256], "Q"))
        self.assertEqual(words(out, "Q"), [math.gcd(a[i], b[i]) for i in range(256)])


class Threads(unittest.TestCase):
    def setUp(self):
        source = random.Random(9)
        self.data = [source.getrandbits(32) for _ in range(768)]

    def test_shuffles_stay_in_their_segment(self):
        data, out = self.data[:64], bytearray(320 * 4)
        for width in (2, 4, 8, 16):
            run(f"warp_shuffle_width_{width}", out, pack(data, "I"))
            got = words(out, "I")
            for i in range(64):
                lane, base = i % 32, i - i % width
                at = lambda j: data[j] if base <= j < base + width else data[i]
                self.assertEqual(got[i * 5:i * 5 + 5], [data[base + (lane * 3 + 1) % width], at(i - 1), at(i + 1),
                                                        at(i ^ width // 2), at(i + width // 2 + 1)])

    def test_votes_and_matches(self):
        out = bytearray(480 * 4)
        run("warp_match", out, pack(self.data[:96], "I"))
        got = words(out, "I")
        for i in range(96):
            warp = self.data[i - i % 32:i - i % 32 + 32]
            mask = lambda key: sum(1 << k for k in range(32) if key(warp[k]) == key(self.data[i]))
            odd = mask(lambda v: v & 1)
            self.assertEqual(got[i * 5:i * 5 + 5], [mask(lambda v: v & 3), mask(lambda v: v & 4),
                                                    odd if odd == 2**32 - 1 else 0, int(odd == 2**32 - 1), 0])

    def test_barriers_count(self):
        out = bytearray(768 * 4)
        run("barrier_count", out, pack(self.data, "I"))
        got = words(out, "I")
        for i in range(768):
            block = self.data[i - i % 96:i - i % 96 + 96]
            self.assertEqual(got[i], sum(v & 1 for v in block) | all(v > 1000 for v in block) << 10 |
                             any(v % 61 == 0 for v in block) << 11 | 1 << 13)

    def test_three_dimensional_indices(self):
        out = bytearray(15 * 14 * 8 * 4)
        run("grid_three_dimensions", out)
        got = words(out, "I")
        for i, value in enumerate(got):
            x, y, z = i % 15, i // 15 % 14, i // 210
            self.assertEqual(value, x | y << 8 | z << 16 | (x // 5 + y // 7 + z // 2) << 24)


if __name__ == "__main__":
    unittest.main()
