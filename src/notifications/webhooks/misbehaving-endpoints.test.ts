import { afterEach, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { createReceivers } from "../../testing/receiver.ts";
import { createWebhookHarness, until } from "../../testing/webhook-harness.ts";

const newHarness = createWebhookHarness();
const newReceiver = createReceivers();
const closers: Array<() => void> = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A server on loopback that speaks no HTTP of its own: what it says to each connection that sent something is said by `say`. */
const listen = (say: (socket: Socket) => void): Promise<string> =>
  new Promise((resolve) => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("data", () => say(socket));
    });
    closers.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address !== null && typeof address === "object") resolve(`http://127.0.0.1:${address.port}/hook`);
    });
  });

const of = (subject: string) => ({ accountId: "account", mode: "live", subject }) as const;

describe("a misbehaving endpoint", () => {
  test.each<[string, (socket: Socket) => void, string, number | null]>([
    ["closes at once", (socket) => socket.destroy(), "pending", null],
    ["speaks no HTTP", (socket) => socket.end("220 mail.example.com ESMTP\r\n"), "pending", null],
    ["closes in the middle of a header", (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-le"), "pending", null],
    [
      "redirects",
      (socket) => socket.end("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"),
      "pending",
      302,
    ],
    [
      "sends hints before its answer",
      (socket) => socket.end("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
      "delivered",
      204,
    ],
    [
      "answers with a body that breaks off",
      (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nok"),
      "delivered",
      200,
    ],
    [
      "answers with 8 MiB",
      (socket) => socket.end(`HTTP/1.1 500 No\r\ncontent-length: ${8 << 20}\r\n\r\n${"x".repeat(8 << 20)}`),
      "pending",
      500,
    ],
  ])("%s", async (_, say, status, httpStatus) => {
    const [harness, good] = [newHarness(), newReceiver()];
    const id = harness.event(await listen(say), {}, of("target:1"));
    const other = harness.event(good.url, {}, of("target:1"));
    harness.dispatcher.start();
    await harness.untilDelivered(other);
    await harness.untilAttempts(id, 1);
    expect(harness.find(id)).toMatchObject({ status, attempts: 1, lastHttpStatus: httpStatus });
    expect(harness.find(id).lastAnswer?.length ?? 0).toBeLessThanOrEqual(1_024);
  });

  test.each<[string, (socket: Socket) => void, object]>([
    ["says nothing", () => undefined, { status: "pending", lastHttpStatus: null }],
    [
      "never ends its header",
      (socket) => socket.write("HTTP/1.1 200 OK\r\nx-a: b\r\n"),
      { status: "pending", lastHttpStatus: null },
    ],
  ])("%s: it has 15 seconds", async (_, say, expected) => {
    const harness = newHarness();
    const called = Promise.withResolvers<void>();
    const url = await listen((socket) => {
      say(socket);
      called.resolve();
    });
    const id = harness.event(url);
    harness.dispatcher.start();
    await called.promise;
    await harness.clock.advance(14_000);
    expect(harness.find(id).attempts).toBe(0);
    await harness.clock.advance(1_000);
    await until(() => harness.find(id).attempts === 1 && harness.dispatcher.running === 0);
    expect(harness.find(id)).toMatchObject(expected);
  });

  test("does not speak TLS", async () => {
    const harness = newHarness();
    const url = (await listen((socket) => socket.end("no TLS here"))).replace("http:", "https:");
    const id = harness.event(url);
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    expect(harness.find(id)).toMatchObject({ status: "pending", lastHttpStatus: null });
    expect(harness.find(id).lastProblem).toContain("The connection failed");
  });
});
