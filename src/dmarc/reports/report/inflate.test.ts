import { describe, expect, test } from "bun:test";
import { constants, deflateRawSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { gunzip, inflateRaw } from "./inflate.ts";

const PLAIN = Buffer.from("report ".repeat(500));
const PACKED = gzipSync(PLAIN);
const BYTES_MAX = 1_000_000;

describe("a gzip file", () => {
  test("cut at any byte gives a beginning of what was packed, says so, or is damaged", async () => {
    for (let end = 0; end < PACKED.byteLength; end += 1) {
      const file = await gunzip(PACKED.subarray(0, end), BYTES_MAX);
      if (!file.ok) {
        expect(file.error).toBe("damaged");
        continue;
      }
      const { bytes, isTruncated } = file.value;
      expect(PLAIN.subarray(0, bytes.byteLength).equals(bytes)).toBe(true);
      expect(isTruncated).toBe(bytes.byteLength < PLAIN.byteLength || end < PACKED.byteLength - 8);
    }
  });

  test("is read whatever follows it", async () => {
    const property = fc.asyncProperty(fc.uint8Array({ maxLength: 40 }), async (tail) => {
      // A tail that is itself a gzip file belongs to it; that much chance is not to be feared here.
      const file = await gunzip(Buffer.concat([PACKED, tail]), BYTES_MAX);
      expect(file.ok && PLAIN.equals(file.value.bytes)).toBe(true);
    });
    await fc.assert(property);
  });

  test("may be as large as allowed, and not a byte larger", async () => {
    expect((await gunzip(PACKED, PLAIN.byteLength)).ok).toBe(true);
    expect(await gunzip(PACKED, PLAIN.byteLength - 1)).toEqual({ ok: false, error: "too_large" });
    expect(await gunzip(PACKED, 0)).toEqual({ ok: false, error: "too_large" });
  });

  test("of several members is limited as a whole", async () => {
    const two = Buffer.concat([PACKED, PACKED]);
    expect(await gunzip(two, 2 * PLAIN.byteLength)).toMatchObject({ ok: true, value: { isTruncated: false } });
    expect(await gunzip(two, 2 * PLAIN.byteLength - 1)).toEqual({ ok: false, error: "too_large" });
  });
});

describe("a stream that gives much", () => {
  const much = Buffer.from(Array.from({ length: 400_000 }, (_, index) => `row ${index % 977}\n`).join(""));
  const raw = deflateRawSync(much);

  test("is inflated beside the event loop, to the same bytes", async () => {
    expect(much.byteLength).toBeGreaterThan(2 * 1024 * 1024);
    const inflated = await inflateRaw(Buffer.concat([raw, Buffer.from("tail")]), much.byteLength);
    expect(inflated.ok && much.equals(inflated.value.bytes)).toBe(true);
    expect(inflated.ok && inflated.value.consumedBytes).toBe(raw.byteLength);
    expect(inflated.ok && inflated.value.isTruncated).toBe(false);
  });

  test("is refused a byte beyond what is allowed", async () => {
    expect(await inflateRaw(raw, much.byteLength - 1)).toEqual({ ok: false, error: "too_large" });
  });

  test("gives its beginning when it is cut off, and says so", async () => {
    const inflated = await inflateRaw(raw.subarray(0, raw.byteLength - 100), 2 * much.byteLength);
    if (!inflated.ok) throw new Error(inflated.error);
    const { bytes, isTruncated } = inflated.value;
    expect(isTruncated).toBe(true);
    expect(bytes.byteLength).toBeGreaterThan(much.byteLength / 2);
    expect(much.subarray(0, bytes.byteLength).equals(bytes)).toBe(true);
  });

  test("is damaged when it is", async () => {
    // Sound blocks, and behind them one of a kind that does not exist.
    const open = deflateRawSync(much, { finishFlush: constants.Z_SYNC_FLUSH });
    const damaged = Buffer.concat([open, Buffer.alloc(100, 0xff)]);
    expect(await inflateRaw(damaged, 2 * much.byteLength)).toEqual({ ok: false, error: "damaged" });
  });
});

test("a raw stream tells how far it reaches", async () => {
  const raw = deflateRawSync(PLAIN);
  const inflated = await inflateRaw(Buffer.concat([raw, Buffer.from("tail")]), BYTES_MAX);
  expect(inflated.ok && inflated.value.consumedBytes).toBe(raw.byteLength);
});

test("any bytes give a result", async () => {
  const property = fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
    expect(["boolean"]).toContain(typeof (await gunzip(new Uint8Array([0x1f, 0x8b, 8, ...bytes]), BYTES_MAX)).ok);
  });
  await fc.assert(property);
});
