import { afterEach, expect, test } from "bun:test";
import { connect, createServer, type Server, type Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { settle } from "../../testing/clock.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../../testing/smtp-stub-key.ts";
import { SmtpServerSocket } from "./smtp-server-socket.ts";

const ends: Array<() => unknown> = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A connection on loopback: the server's end as an `SmtpServerSocket`, the client's as a plain socket. */
const open = async (): Promise<{
  server: SmtpServerSocket;
  accepted: Socket;
  client: Socket;
  closes: () => number;
}> => {
  const accepted = Promise.withResolvers<Socket>();
  const listener: Server = createServer((socket) => accepted.resolve(socket));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const bound = listener.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  const client = connect({ port, host: "127.0.0.1", noDelay: true });
  client.on("error", () => undefined);
  let closes = 0;
  const socket = await accepted.promise;
  const server = new SmtpServerSocket(socket, () => closes++);
  ends.push(
    () => client.destroy(),
    () => server.destroy(),
    () => listener.close(),
  );
  return { server, accepted: socket, client, closes: () => closes };
};

test("lines end with CRLF or LF, and what follows a line is kept for the next read", async () => {
  const { server, client } = await open();
  client.write("one\r\ntwo\nüber\r\r\n\r\nx");
  expect(await server.readLine(100)).toBe("one");
  expect(await server.readLine(100)).toBe("two");
  expect(await server.readLine(100)).toBe("über\r");
  expect(await server.readLine(100)).toBe("");
  client.end();
  expect(await server.readLine(100)).toBeNull();
});

test("a line is too long when it has more bytes than it may, ended or not", async () => {
  const { server, client } = await open();
  client.write(`${"x".repeat(10)}\n${"x".repeat(11)}`);
  expect(await server.readLine(10)).toBe("x".repeat(10));
  expect(await server.readLine(10)).toBe("too_long");
});

test("after the last reply nothing is read", async () => {
  const { server, client, closes } = await open();
  client.resume();
  client.write("QUIT\r\nNOOP\r\n");
  expect(await server.readLine(100)).toBe("QUIT");
  server.finish("221 2.0.0 Bye\r\n");
  expect(await server.readLine(100)).toBeNull();
  await new Promise((resolve) => client.once("close", resolve));
  while (closes() === 0) await settle();
  server.destroy();
  expect(closes()).toBe(1);
});

test("a client that sends faster than it is read has to wait", async () => {
  const { client } = await open();
  // More than the buffers of the kernel take.
  client.write(Buffer.alloc(40_000_000, "x"));
  for (let turn = 0; turn < 50; turn++) await settle();
  expect(client.writableLength).toBeGreaterThan(0);
});

test("a handshake is not over when earlier replies are taken, only when it succeeds or the connection ends", async () => {
  const { server, accepted, client } = await open();
  client.resume();
  let result: boolean | null = null;
  const context = createSecureContext({ cert: TEST_CERTIFICATE, key: TEST_KEY });
  const upgrading = server.startTls("220 2.0.0 Ready\r\n", context).then((isSecure) => {
    result = isSecure;
  });
  accepted.emit("drain");
  for (let turn = 0; turn < 5; turn++) await settle();
  expect(result).toBeNull();
  client.destroy();
  await upgrading;
  expect(result as boolean | null).toBe(false);
});

test("no command is read from a client that does not read its replies", async () => {
  const { server, client } = await open();
  client.pause();
  const reply = `250 ${"x".repeat(1_000_000)}\r\n`;
  // More than the buffers of the kernel take.
  for (let count = 0; count < 40; count++) server.write(reply);
  client.write("NOOP\r\n");
  let line: string | null = null;
  const reading = server.readLine(100).then((read) => {
    line = read;
  });
  for (let turn = 0; turn < 20; turn++) await settle();
  expect(line).toBeNull();
  client.resume();
  await reading;
  expect(line as string | null).toBe("NOOP");
});
