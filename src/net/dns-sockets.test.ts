import { afterEach, expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { DnsSockets, QUERIES_PER_SOCKET_MAX, SOCKET_AGE_MS_MAX } from "./dns-sockets.ts";

const servers: Array<{ close(): void }> = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

interface Arrived {
  readonly id: number;
  readonly port: number;
}

/** A server that notes the id and the source port of each packet, and sends only what it is told to. */
const startServer = async () => {
  const arrived: Arrived[] = [];
  let wanted = { count: 0, resolve: (): void => undefined };
  const udp = await Bun.udpSocket({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(_, packet, port) {
        arrived.push({ id: packet.readUInt16BE(0), port });
        if (arrived.length === wanted.count) wanted.resolve();
      },
    },
  });
  servers.push(udp);
  const received = (count: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    wanted = { count, resolve };
    if (arrived.length >= count) resolve();
    return promise;
  };
  return { udp, arrived, received, address: { address: "127.0.0.1", port: udp.port } };
};

const packetOf = (id: number): Buffer => Buffer.from([id >> 8, id & 255, 1, 2, 3]);

const nothing = (): void => undefined;

const setUp = async () => {
  const server = await startServer();
  const clock = createTestClock();
  const sockets = new DnsSockets(clock);
  /** Sends a query that is never answered; the result ends it. */
  const send = async (id: number, receive: (packet: Uint8Array) => void = nothing) => {
    const socket = sockets.socketFor(server.address, id);
    const leave = socket.join({ id, receive, fail: nothing });
    await socket.send(packetOf(id));
    return leave;
  };
  return { ...server, clock, sockets, send };
};

test("queries under way at once share sockets, none of which carries more than its limit", async () => {
  const { arrived, received, send } = await setUp();
  const count = 3 * QUERIES_PER_SOCKET_MAX + 1;
  const leaves = await Promise.all(Array.from({ length: count }, (_, id) => send(id)));
  await received(count);
  const byPort = [...Map.groupBy(arrived, ({ port }) => port).values()].map((queries) => queries.length);
  expect(byPort.toSorted((a, b) => b - a)).toEqual([...Array.from({ length: 3 }, () => QUERIES_PER_SOCKET_MAX), 1]);
  for (const leave of leaves) leave();
});

test("a query that is alone has a socket of its own", async () => {
  const { sockets, address, send } = await setUp();
  const leave = await send(1);
  const first = sockets.socketFor(address, 2);
  expect(sockets.socketFor(address, 2)).toBe(first);
  leave();
  const next = sockets.socketFor(address, 2);
  expect(next).not.toBe(first);
  next.join({ id: 2, receive: nothing, fail: nothing })();
});

test("two queries of one id never share a socket", async () => {
  const { arrived, received, send } = await setUp();
  const leaves = [await send(7), await send(7), await send(8)];
  await received(3);
  const ports = arrived.filter(({ id }) => id === 7).map(({ port }) => port);
  expect(new Set(ports).size).toBe(2);
  for (const leave of leaves) leave();
});

test("a socket takes no more queries after its time, though it still carries some", async () => {
  const { arrived, received, clock, send } = await setUp();
  const leaves = [await send(1)];
  await clock.advance(SOCKET_AGE_MS_MAX - 1);
  leaves.push(await send(2));
  await clock.advance(1);
  leaves.push(await send(3));
  await received(3);
  const portOf = (wanted: number) => arrived.find(({ id }) => id === wanted)?.port;
  expect(portOf(2)).toBe(portOf(1));
  expect(portOf(3)).not.toBe(portOf(1));
  for (const leave of leaves) leave();
});

test("a packet reaches the query of its id, and none that has ended", async () => {
  const { udp, arrived, received, send } = await setUp();
  const got: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const receiver = (name: string) => (packet: Uint8Array) => {
    got.push(`${name} ${packet.length}`);
    if (name === "last") resolve();
  };
  const leaves = [await send(1, receiver("one")), await send(2, receiver("two")), await send(3, receiver("last"))];
  await received(3);
  const port = arrived[0]?.port ?? 0;
  leaves[0]?.();
  for (const packet of [packetOf(1), packetOf(2), packetOf(9), Buffer.from([0]), packetOf(3)])
    udp.send(packet, port, "127.0.0.1");
  await promise;
  expect(got).toEqual(["two 5", "last 5"]);
  for (const leave of leaves) leave();
});

test("all queries of a socket fail when the server refuses a packet, and the next one gets another socket", async () => {
  const { udp, sockets, address } = await setUp();
  servers.splice(0);
  udp.close();
  const failed: number[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = sockets.socketFor(address, 1);
  for (const id of [1, 2])
    first.join({
      id,
      receive: nothing,
      fail: () => {
        if (failed.push(id) === 2) resolve();
      },
    });
  await first.send(packetOf(1));
  await promise;
  expect(failed).toEqual([1, 2]);
  expect(sockets.socketFor(address, 3)).not.toBe(first);
});
