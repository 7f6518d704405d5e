import { afterEach, describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";

const start = createApps();

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** The service behind a real socket; `answers` holds what the handler returned, heard by the caller or not. */
const listen = () => {
  const app = start();
  const first = Promise.withResolvers<{ readonly status: number }>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const response = await app.handle(request);
      first.resolve({ status: response.status });
      return response;
    },
  });
  stops.push(() => void server.stop(true));
  return { app, port: server.port ?? 0, firstAnswer: first.promise };
};

/** Sends raw bytes and answers all that comes back until the other side closes. */
const exchange = (port: number, text: string): Promise<string> => {
  const ended = Promise.withResolvers<string>();
  let heard = "";
  void Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) => void socket.write(text),
      data(_, chunk) {
        heard += chunk.toString();
      },
      close: () => ended.resolve(heard),
    },
  });
  return ended.promise;
};

describe("over a real connection", () => {
  test.each([
    ["GET /healthz HTTP/1.0\r\n\r\n", 200, '{"status":"ok",'],
    ["GET /nowhere HTTP/1.0\r\n\r\n", 404, '"error":"not_found"'],
    ["POST /healthz?x=/nowhere HTTP/1.0\r\n\r\n", 405, '"error":"method_not_allowed"'],
    ["GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200, '{"status":"ok",'],
    ["GET /healthz HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n", 200, '{"status":"ok",'],
    ["GET /healthz HTTP/1.1\r\nHost: :::no:::\r\nConnection: close\r\n\r\n", 200, '{"status":"ok",'],
    ["GET http://b/healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200, '{"status":"ok",'],
    ["GET https://b.example/nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404, '"error":"not_found"'],
    ["GET //b/healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404, '"error":"not_found"'],
    ["GET /v1/account HTTP/1.0\r\n\r\n", 401, '"error":"unauthorized"'],
  ])("%j is answered like any other request, whatever its Host and target are like", async (text, status, body) => {
    const heard = await exchange(listen().port, text);
    expect(heard).toStartWith(`HTTP/1.1 ${status} `);
    expect(heard).toContain(body);
    expect(heard.toLowerCase()).toContain("x-request-id: ");
  });

  test.each([
    "Host: a\r\nHost: b",
    "Host: a\r\nHost: a",
    "Host:\r\nHost: a",
    "Host: a, b",
    "Host: no host",
    "Host: a/healthz?",
  ])("%j is 400 (RFC 9112 §3.2)", async (fields) => {
    const heard = await exchange(listen().port, `GET /healthz HTTP/1.1\r\n${fields}\r\nConnection: close\r\n\r\n`);
    expect(heard).toStartWith("HTTP/1.1 400 ");
    expect(heard).toContain('"error":"Invalid host"');
    expect(heard.toLowerCase()).toContain("x-request-id: ");
  });

  test.each([
    ["Content-Length: 100", '{"email":'],
    ["Transfer-Encoding: chunked", '9\r\n{"email":\r\n'],
  ])(
    "a caller that hangs up in the middle of its body (%s) is no error of ours, and starts nothing",
    async (header, part) => {
      const { app, port, firstAnswer } = listen();
      const { key } = app.newKey();
      const head = `POST /v1/email-verifications HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${header}\r\n\r\n`;
      const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => undefined } });
      socket.write(head + part);
      socket.flush();
      socket.end();
      expect((await firstAnswer).status).toBe(499);
      expect(app.logged).toEqual([]);
      expect(app.countVerifications()).toBe(0);
    },
  );

  test.each([
    ["another POST", (post: string) => post + post],
    ["a GET", (post: string) => `${post}GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n`],
  ])("a POST with %s behind it on the connection is not carried out, for it could not be answered", async (_, both) => {
    const { app, port, firstAnswer } = listen();
    const { key } = app.newKey({ mode: "live" });
    const body = '{"email":"someone@any.example"}';
    const head = `POST /v1/email-verifications?timeout=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`;
    expect(await exchange(port, both(`${head}Content-Length: ${body.length}\r\n\r\n${body}`))).toBe("");
    expect((await firstAnswer).status).toBe(499);
    expect(app.countVerifications()).toBe(0);
    expect(app.credits()).toEqual({ available: 100, held: 0 });
    expect(app.logged).toEqual([]);
  });

  test("a POST whose body comes with another request is not carried out either", async () => {
    const { app, port, firstAnswer } = listen();
    const { key } = app.newKey({ mode: "live" });
    const body = '{"email":"someone@any.example"}';
    const head = `POST /v1/email-verifications HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`;
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => undefined } });
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`);
    socket.flush();
    for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
    socket.write(`${body.slice(5)}GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n`);
    socket.flush();
    expect((await firstAnswer).status).toBe(499);
    expect(app.countVerifications()).toBe(0);
  });

  test("a caller that hangs up while it waits leaves the check alone", async () => {
    const { app, port, firstAnswer } = listen();
    const key = app.newKey();
    const body = '{"email":"pending@any.example"}';
    const head = `POST /v1/email-verifications?timeout=90 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key.key}\r\n`;
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => undefined } });
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    socket.flush();
    for (let turn = 0; turn < 100_000 && app.countVerifications() === 0; turn++) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    socket.terminate();
    expect((await firstAnswer).status).toBe(202);
    await app.advance(8_000);
    const { body: list } = await app.request("GET", "/v1/email-verifications", { key });
    expect(list.verifications).toEqual([expect.objectContaining({ status: "completed" })]);
  });
});
