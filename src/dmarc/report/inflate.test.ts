import { describe, expect, test } from "bun:test";
import { deflateRawSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { gunzip, inflateRaw } from "./inflate.ts";

const PLAIN = Buffer.from("report ".repeat(500));
const PACKED = gzipSync(PLAIN);
const BYTES_MAX = 1_000_000;

describe("a gzip file", () => {
  test("cut at any byte gives a beginning of what was packed, says so, or is damaged", () => {
    for (let end = 0; end < PACKED.byteLength; end += 1) {
      const file = gunzip(PACKED.subarray(0, end), BYTES_MAX);
      if (!file.ok) {
        expect(file.error).toBe("damaged");
        continue;
      }
      const { bytes, isTruncated } = file.value;
      expect(PLAIN.subarray(0, bytes.byteLength).equals(bytes)).toBe(true);
      expect(isTruncated).toBe(bytes.byteLength < PLAIN.byteLength || end < PACKED.byteLength - 8);
    }
  });

  test("is read whatever follows it", () => {
    const property = fc.property(fc.uint8Array({ maxLength: 40 }), (tail) => {
      // A tail that is itself a gzip file belongs to it; that much chance is not to be feared here.
      const file = gunzip(Buffer.concat([PACKED, tail]), BYTES_MAX);
      expect(file.ok && PLAIN.equals(file.value.bytes)).toBe(true);
    });
    fc.assert(property);
  });

  test("may be as large as allowed, and not a byte larger", () => {
    expect(gunzip(PACKED, PLAIN.byteLength).ok).toBe(true);
    expect(gunzip(PACKED, PLAIN.byteLength - 1)).toEqual({ ok: false, error: "too_large" });
    expect(gunzip(PACKED, 0)).toEqual({ ok: false, error: "too_large" });
  });

  test("of several members is limited as a whole", () => {
    const two = Buffer.concat([PACKED, PACKED]);
    expect(gunzip(two, 2 * PLAIN.byteLength)).toMatchObject({ ok: true, value: { isTruncated: false } });
    expect(gunzip(two, 2 * PLAIN.byteLength - 1)).toEqual({ ok: false, error: "too_large" });
  });
});

test("a raw stream tells how far it reaches", () => {
  const raw = deflateRawSync(PLAIN);
  const inflated = inflateRaw(Buffer.concat([raw, Buffer.from("tail")]), BYTES_MAX);
  expect(inflated.ok && inflated.value.consumedBytes).toBe(raw.byteLength);
});

test("any bytes give a result", () => {
  const property = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
    expect(["boolean"]).toContain(typeof gunzip(new Uint8Array([0x1f, 0x8b, 8, ...bytes]), BYTES_MAX).ok);
  });
  fc.assert(property);
});
