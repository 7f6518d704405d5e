import { describe, expect, test } from "bun:test";
import { RECEIVER_LIMITS } from "./smtp-receiver-limits.ts";
import { plainAddress, ReceiverLoad } from "./smtp-receiver-load.ts";

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
