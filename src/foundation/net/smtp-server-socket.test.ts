import { afterEach, expect, test } from "bun:test";
import { connect, createServer, type Server, type Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { settle } from "../../testing/clock.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../../testing/smtp-stub-key.ts";
import { SmtpServerSocket, ContentDecoder } from "./smtp-server-socket.ts";
import fc from "fast-check";

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

/** What a decoder makes of chunks: the content and what follows it, as latin1; no rest while the content has not ended. */
const decode = (chunks: readonly string[]): { content: string; rest: string | null } => {
  const decoder = new ContentDecoder();
  const pieces: Uint8Array[] = [];
  for (const [index, chunk] of chunks.entries()) {
    const rest = decoder.push(Buffer.from(chunk, "latin1"), (piece) => pieces.push(Uint8Array.from(piece)));
    if (rest === null) continue;
    const following = [Buffer.from(rest).toString("latin1"), ...chunks.slice(index + 1)].join("");
    return { content: Buffer.concat(pieces).toString("latin1"), rest: following };
  }
  return { content: Buffer.concat(pieces).toString("latin1"), rest: null };
};

/** The same by the text of the RFC: the content ends at CRLF.CRLF, then every line loses a stuffed dot. */
const decodeSlowly = (wire: string): { content: string; rest: string | null } => {
  const end = `\r\n${wire}`.indexOf("\r\n.\r\n");
  const stuffed = end === -1 ? wire : wire.slice(0, end);
  return { content: stuffed.replace(/(^|\n)\.\./g, "$1."), rest: end === -1 ? null : wire.slice(end + 3) };
};

const FRAGMENTS = ["\r\n", "\n", "\r", ".", "..", ".\r\n", "\r\n.\r\n", "x", "\0", " "];

test("the content is the same wherever the chunks are cut", () => {
  const property = fc.property(
    fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 20 }),
    fc.array(fc.nat(40), { maxLength: 8 }),
    (fragments, cuts) => {
      // Closed by an end, so that nothing is held back.
      const wire = `${fragments.join("")}\r\n.\r\nMAIL`;
      const offsets = [0, ...cuts.filter((cut) => cut < wire.length).toSorted((a, b) => a - b), wire.length];
      const chunks = offsets.slice(1).map((to, index) => wire.slice(offsets[index], to));
      expect(decode(chunks)).toEqual(decodeSlowly(wire));
    },
  );
  fc.assert(property, { numRuns: 5_000 });
});

test("every single byte may be a chunk", () => {
  for (const wire of [
    "..one\r\n.\r\n",
    ".\r\n",
    "\r\n.\r\nQUIT",
    "a\n..b\r\n...\r\n.\r\r\n.\r\n",
    "x\r\n.y\r\n.\r\n",
  ]) {
    expect(decode([...wire])).toEqual(decodeSlowly(wire));
  }
});
