import { describe, expect, test } from "bun:test";
import { RECEIVER_LIMITS } from "./smtp-receiver-rules.ts";
import { plainAddress, ReceiverLoad, MailBuffer } from "./smtp-receiver-load.ts";

const limits = {
  ...RECEIVER_LIMITS,
  connections: 5,
  connectionsPerClient: 2,
  connectionsPerLocalClient: 4,
  connectionsPerNetwork: 3,
  reservedConnections: 0,
  heldBytes: 100,
  heldBytesPerClient: 60,
};

describe("a client", () => {
  test.each([
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["192.0.2.1", "192.0.2.1"],
    ["fe80::1%eth0", "fe80::1"],
    ["2001:DB8:0::1", "2001:db8::1"],
    ["", ""],
  ])("%s is written %s", (address, plain) => {
    expect(plainAddress(address)).toBe(plain);
  });
});

describe("slots", () => {
  test("are limited for one client, by the /64 of an IPv6 address", () => {
    const load = new ReceiverLoad(limits);
    expect(load.enter("2001:db8::1")).not.toBeNull();
    expect(load.enter("2001:db8::2")).not.toBeNull();
    expect(load.enter("2001:db8::3")).toBeNull();
    expect(load.enter("2001:db8:0:1::1")).not.toBeNull();
  });

  test("are more for this machine, and limited for all", () => {
    const load = new ReceiverLoad(limits);
    const slots = Array.from({ length: 5 }, () => load.enter("127.0.0.1"));
    expect(slots.map((slot) => slot !== null)).toEqual([true, true, true, true, false]);
    expect(load.enter("192.0.2.1")).not.toBeNull();
    expect(load.enter("192.0.2.2")).toBeNull();
  });

  test("are limited for one network: a /24, a /48", () => {
    const load = new ReceiverLoad(limits);
    const enterAll = (...clients: string[]) => clients.map((client) => load.enter(client) !== null);
    expect(enterAll("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")).toEqual([true, true, true, false]);
    expect(enterAll("192.0.3.1")).toEqual([true]);
    const other = new ReceiverLoad(limits);
    const groups = ["1", "2", "3", "4"].map((group) => other.enter(`2001:db8:0:${group}::1`) !== null);
    expect(groups).toEqual([true, true, true, false]);
    expect(other.enter("2001:db8:1::1")).not.toBeNull();
  });

  test("are kept for networks that have none, and for this machine", () => {
    const load = new ReceiverLoad({ ...limits, reservedConnections: 3 });
    expect([load.enter("192.0.2.1"), load.enter("192.0.2.2")].every((slot) => slot !== null)).toBe(true);
    expect([load.enter("192.0.2.3"), load.isWaiting("192.0.2.3")]).toEqual([null, true]);
    const other = load.enter("198.51.100.1");
    expect(other).not.toBeNull();
    expect(load.enter("198.51.100.2")).toBeNull();
    expect(load.enter("127.0.0.1")).not.toBeNull();
    other?.release();
    expect(load.enter("198.51.100.2")).not.toBeNull();
  });

  test("come back once, however often they are given back, and clients are forgotten", () => {
    const load = new ReceiverLoad(limits);
    const slot = load.enter("192.0.2.1");
    slot?.release();
    slot?.release();
    expect([load.connections, load.clients]).toEqual([0, 0]);
  });
});

describe("memory", () => {
  test("is limited for one client and for all", () => {
    const load = new ReceiverLoad(limits);
    const one = load.enter("192.0.2.1");
    const same = load.enter("192.0.2.1");
    const two = load.enter("192.0.2.2");
    expect(one?.reserve(40)).toBe(true);
    expect(same?.reserve(21)).toBe(false);
    expect(same?.reserve(20)).toBe(true);
    expect(two?.reserve(41)).toBe(false);
    expect(two?.canReserve(40)).toBe(true);
    expect(load.bytes).toBe(60);
  });

  test("may all be used by this machine", () => {
    expect(new ReceiverLoad(limits).enter("127.0.0.1")?.reserve(100)).toBe(true);
  });

  test("stays held when the connection leaves before it is given back", () => {
    const load = new ReceiverLoad(limits);
    const slot = load.enter("192.0.2.1");
    slot?.reserve(50);
    slot?.release();
    expect([load.bytes, load.clients]).toEqual([50, 1]);
    slot?.free(50);
    expect([load.bytes, load.clients]).toEqual([0, 0]);
  });
});

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
