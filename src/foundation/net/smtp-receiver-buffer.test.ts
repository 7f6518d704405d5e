import { describe, expect, test } from "bun:test";
import { MailBuffer } from "./smtp-receiver-buffer.ts";

const createMemory = (bytesMax: number, heldMax = Number.POSITIVE_INFINITY) => {
  const memory = {
    bytesMax,
    held: 0,
    reserve(bytes: number) {
      if (memory.held + bytes > heldMax) return false;
      memory.held += bytes;
      return true;
    },
    free(bytes: number) {
      memory.held -= bytes;
    },
  };
  return memory;
};

const bufferIn = (memory: ReturnType<typeof createMemory>) => new MailBuffer(memory, memory.bytesMax);
const bytesOf = (text: string) => new TextEncoder().encode(text);
const textOf = (buffer: MailBuffer) => {
  const bytes = buffer.finish();
  return bytes.ok ? new TextDecoder().decode(bytes.value) : bytes.error;
};

describe("the content of a mail", () => {
  test("of one piece is not copied", () => {
    const buffer = bufferIn(createMemory(100));
    const piece = bytesOf("all");
    buffer.add(piece);
    const bytes = buffer.finish();
    expect(bytes.ok && bytes.value.buffer === piece.buffer).toBe(true);
  });

  test("of many pieces is put together", () => {
    const buffer = bufferIn(createMemory(1_000_000));
    const pieces = Array.from({ length: 50_000 }, (_, index) => `${index} `);
    for (const piece of pieces) buffer.add(bytesOf(piece));
    expect(textOf(buffer)).toBe(pieces.join(""));
  });

  test("holds no more than twice its bytes, and a first buffer", () => {
    const memory = createMemory(1_000_000);
    const buffer = bufferIn(memory);
    for (let count = 0; count < 100_000; count++) buffer.add(bytesOf("abcd"));
    expect(memory.held).toBeGreaterThanOrEqual(400_000);
    expect(memory.held).toBeLessThan(800_000);
    buffer.release();
    expect(memory.held).toBe(0);
  });

  test("never holds more than the limit", () => {
    const memory = createMemory(20_000);
    const buffer = bufferIn(memory);
    for (let count = 0; count < 5_000; count++) buffer.add(bytesOf("abcd"));
    expect(memory.held).toBe(20_000);
    expect(textOf(buffer)).toHaveLength(20_000);
  });

  test("above the limit is not kept, only counted", () => {
    const memory = createMemory(10);
    const buffer = bufferIn(memory);
    for (const piece of ["12345", "67890", "1", "2"]) buffer.add(bytesOf(piece));
    expect([textOf(buffer), buffer.bytesSeen, memory.held]).toEqual(["too_large", 12, 0]);
  });

  test("without memory is not kept", () => {
    const memory = createMemory(100, 10);
    const buffer = bufferIn(memory);
    buffer.add(bytesOf("12345678"));
    buffer.add(bytesOf("90a"));
    expect([textOf(buffer), memory.held]).toEqual(["no_memory", 0]);
  });

  test("that is given up is gone, one that is whole stays", () => {
    const memory = createMemory(100);
    const half = bufferIn(memory);
    half.add(bytesOf("half"));
    half.abandon();
    expect([textOf(half), memory.held]).toEqual(["abandoned", 0]);
    const whole = bufferIn(memory);
    whole.add(bytesOf("whole"));
    expect(textOf(whole)).toBe("whole");
    whole.abandon();
    expect(textOf(whole)).toBe("whole");
  });
});
