import { afterEach, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { DnsSockets, type SentQuery, QUERIES_PER_SOCKET_MAX, SOCKET_AGE_MS_MAX } from "./dns-sockets.ts";

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

const queryOf = (id: number, events: Partial<SentQuery> = {}): SentQuery => ({
  ...{ id, packet: packetOf(id), receive: nothing, fail: nothing, failToSend: nothing },
  ...events,
});

const setUp = async () => {
  const server = await startServer();
  const clock = createTestClock();
  const sockets = new DnsSockets(clock);
  /** Sends a query that is never answered; the result ends it. */
  const send = (id: number, receive: (packet: Uint8Array) => void = nothing) => {
    const socket = sockets.socketFor(server.address, id);
    const query = queryOf(id, { receive });
    socket.carry(query);
    return () => socket.leave(query);
  };
  return { ...server, clock, sockets, send };
};

test("queries under way at once share sockets, none of which carries more than its limit", async () => {
  const { arrived, received, send } = await setUp();
  const count = 3 * QUERIES_PER_SOCKET_MAX + 1;
  const leaves = Array.from({ length: count }, (_, id) => send(id));
  await received(count);
  const byPort = [...Map.groupBy(arrived, ({ port }) => port).values()].map((queries) => queries.length);
  expect(byPort.toSorted((a, b) => b - a)).toEqual([...Array.from({ length: 3 }, () => QUERIES_PER_SOCKET_MAX), 1]);
  for (const leave of leaves) leave();
});

test("a query that is alone has a socket of its own", async () => {
  const { sockets, address, send } = await setUp();
  const leave = send(1);
  const first = sockets.socketFor(address, 2);
  expect(sockets.socketFor(address, 2)).toBe(first);
  leave();
  const next = sockets.socketFor(address, 2);
  expect(next).not.toBe(first);
  const query = queryOf(2);
  next.carry(query);
  next.leave(query);
});

test("two queries of one id never share a socket", async () => {
  const { arrived, received, send } = await setUp();
  const leaves = [send(7), send(7), send(8)];
  await received(3);
  const ports = arrived.filter(({ id }) => id === 7).map(({ port }) => port);
  expect(new Set(ports).size).toBe(2);
  for (const leave of leaves) leave();
});

test("a socket takes no more queries after its time, though it still carries some", async () => {
  const { arrived, received, clock, send } = await setUp();
  const leaves = [send(1)];
  await clock.advance(SOCKET_AGE_MS_MAX - 1);
  leaves.push(send(2));
  await clock.advance(1);
  leaves.push(send(3));
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
  const leaves = [send(1, receiver("one")), send(2, receiver("two")), send(3, receiver("last"))];
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
  const fail = (id: number) => () => {
    if (failed.push(id) === 2) resolve();
  };
  for (const id of [1, 2]) first.carry(queryOf(id, { fail: fail(id) }));
  await promise;
  expect(failed).toEqual([1, 2]);
  expect(sockets.socketFor(address, 3)).not.toBe(first);
});

test("a query learns that no socket can be opened, and the next one tries another", () => {
  const sockets = new DnsSockets(createTestClock());
  const server = { address: "no address", port: 53 };
  const failed: number[] = [];
  const failToSend = (id: number) => () => void failed.push(id);
  for (const id of [1, 2]) sockets.socketFor(server, id).carry(queryOf(id, { failToSend: failToSend(id) }));
  expect(failed).toEqual([1, 2]);
});

test("what one turn sends arrives whole, without the queries that ended before", async () => {
  const { arrived, received, sockets, address, send } = await setUp();
  const leaves = [1, 2, 3].map((id) => send(id));
  const ended = queryOf(4);
  const socket = sockets.socketFor(address, 4);
  socket.carry(ended);
  socket.leave(ended);
  leaves.push(send(5));
  await received(4);
  expect(arrived.map(({ id }) => id)).toEqual([1, 2, 3, 5]);
  for (const leave of leaves) leave();
});
