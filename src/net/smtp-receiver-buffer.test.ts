import { describe, expect, test } from "bun:test";
import { MailBuffer } from "./smtp-receiver-buffer.ts";

const createRoom = (bytesMax: number, heldMax = Number.POSITIVE_INFINITY) => {
  const room = {
    bytesMax,
    held: 0,
    hold(bytes: number) {
      if (room.held + bytes > heldMax) return false;
      room.held += bytes;
      return true;
    },
    letGo(bytes: number) {
      room.held -= bytes;
    },
  };
  return room;
};

const bytesOf = (text: string) => new TextEncoder().encode(text);
const textOf = (buffer: MailBuffer) => {
  const bytes = buffer.finish();
  return bytes.ok ? new TextDecoder().decode(bytes.value) : bytes.error;
};

describe("the content of a mail", () => {
  test("of one piece is not copied", () => {
    const buffer = new MailBuffer(createRoom(100));
    const piece = bytesOf("all");
    buffer.add(piece);
    const bytes = buffer.finish();
    expect(bytes.ok && bytes.value.buffer === piece.buffer).toBe(true);
  });

  test("of many pieces is put together", () => {
    const buffer = new MailBuffer(createRoom(1_000_000));
    const pieces = Array.from({ length: 50_000 }, (_, index) => `${index} `);
    for (const piece of pieces) buffer.add(bytesOf(piece));
    expect(textOf(buffer)).toBe(pieces.join(""));
  });

  test("holds no more than twice its bytes, and a first buffer", () => {
    const room = createRoom(1_000_000);
    const buffer = new MailBuffer(room);
    for (let count = 0; count < 100_000; count++) buffer.add(bytesOf("abcd"));
    expect(room.held).toBeGreaterThanOrEqual(400_000);
    expect(room.held).toBeLessThan(800_000);
    buffer.release();
    expect(room.held).toBe(0);
  });

  test("never holds more than the limit", () => {
    const room = createRoom(20_000);
    const buffer = new MailBuffer(room);
    for (let count = 0; count < 5_000; count++) buffer.add(bytesOf("abcd"));
    expect(room.held).toBe(20_000);
    expect(textOf(buffer)).toHaveLength(20_000);
  });

  test("above the limit is not kept, only counted", () => {
    const room = createRoom(10);
    const buffer = new MailBuffer(room);
    for (const piece of ["12345", "67890", "1", "2"]) buffer.add(bytesOf(piece));
    expect([textOf(buffer), buffer.bytesSeen, room.held]).toEqual(["too_large", 12, 0]);
  });

  test("without memory is not kept", () => {
    const room = createRoom(100, 10);
    const buffer = new MailBuffer(room);
    buffer.add(bytesOf("12345678"));
    buffer.add(bytesOf("90a"));
    expect([textOf(buffer), room.held]).toEqual(["no_room", 0]);
  });

  test("that is given up is gone, one that is whole stays", () => {
    const room = createRoom(100);
    const half = new MailBuffer(room);
    half.add(bytesOf("half"));
    half.abandon();
    expect([textOf(half), room.held]).toEqual(["abandoned", 0]);
    const whole = new MailBuffer(room);
    whole.add(bytesOf("whole"));
    expect(textOf(whole)).toBe("whole");
    whole.abandon();
    expect(textOf(whole)).toBe("whole");
  });
});
