import { expect, test } from "bun:test";
import { createFrameReader, frame } from "./dns-transport.ts";

test("a framed message reads back, however it is split", () => {
  const message = Uint8Array.from({ length: 9 }, (_, index) => index);
  const framed = frame(message);
  for (let first = 0; first <= framed.length; first++) {
    for (let second = first; second <= framed.length; second++) {
      const read = createFrameReader();
      const chunks = [framed.subarray(0, first), framed.subarray(first, second), framed.subarray(second)];
      const results = chunks.map(read).filter((result) => result !== undefined);
      expect(results[0]).toEqual(message);
    }
  }
});

test("nothing is given before the last octet", () => {
  const framed = frame(new Uint8Array(3));
  const read = createFrameReader();
  const results = Array.from(framed, (byte) => read(Uint8Array.of(byte))?.length);
  expect(results).toEqual([undefined, undefined, undefined, undefined, 3]);
});

test("what follows the message is dropped", () => {
  const read = createFrameReader();
  expect(read(Uint8Array.of(0, 1, 7, 8, 9))).toEqual(Uint8Array.of(7));
});

test("the longest message fits, an empty one too", () => {
  expect(createFrameReader()(frame(new Uint8Array(65_535)))?.length).toBe(65_535);
  expect(createFrameReader()(frame(new Uint8Array(0)))?.length).toBe(0);
});
