import { describe, expect, test } from "bun:test";
import { ClientAddresses } from "./client-addresses.ts";
import { gunzipSync } from "node:zlib";
import { createApplication } from "../../service/http-application.ts";
import { createServer } from "../../service/server.ts";
import { silentLog } from "../../testing/silent-log.ts";
import { createTestClock } from "../../testing/clock.ts";
import {
  sendBytes,
  sendJson,
  sendText,
  streamResponse,
  streamRows,
  takesGzip,
  TextResponse,
  withoutWrongLength,
  attachment,
} from "./response.ts";
import type { ServedRoute } from "./route.ts";
import { createBudgets, trackRequest } from "./request-memory.ts";
import fc from "fast-check";

const MIB = 1024 * 1024;

const requestOf = (headers: Record<string, string> = {}, method = "GET") =>
  new Request("http://localhost/", { method, headers });

/** Requests of accounts that share one process. */
const world = () => {
  const budgets = createBudgets(createTestClock());
  return {
    held: () => budgets.answers.held,
    from(owner: string, headers?: Record<string, string>, method?: string) {
      const request = requestOf(headers, method);
      trackRequest(request, owner, budgets);
      return request;
    },
  };
};

test.each([
  [undefined, false],
  ["", false],
  ["identity", false],
  ["gzip", true],
  ["GZIP", true],
  ["x-gzip", true],
  ["deflate, gzip;q=0.5, br", true],
  ["gzip;q=0", false],
  ["gzip; q=0.000", false],
  ["*", true],
  ["*;q=0", false],
  ["gzip;q=0, *", false],
  ["br", false],
])("Accept-Encoding: %p takes gzip: %p", (accept, isWanted) => {
  expect(takesGzip(requestOf(accept === undefined ? {} : { "accept-encoding": accept }))).toBe(isWanted);
});

describe("a large answer", () => {
  const value = { rows: Array.from({ length: 20_000 }, (_, at) => `row ${at} ä`) };

  test("is compressed for whom that is fine, and the same without", async () => {
    const zipped = sendJson(requestOf({ "accept-encoding": "gzip" }), value, { vary: "accept" });
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(zipped.headers.get("vary")).toBe("accept, accept-encoding");
    const bytes = await zipped.bytes();
    expect(bytes.byteLength).toBeLessThan(JSON.stringify(value).length / 3);
    expect(JSON.parse(new TextDecoder().decode(gunzipSync(bytes)))).toEqual(value);
    const plain = sendJson(requestOf(), value);
    expect([plain.headers.get("content-encoding"), plain.headers.get("vary")]).toEqual([null, "accept-encoding"]);
    expect(await plain.json()).toEqual(value);
  });

  test("that is small is sent as it is", async () => {
    const answer = sendJson(requestOf({ "accept-encoding": "gzip" }), { ok: true });
    expect(answer.headers.get("content-encoding")).toBeNull();
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(await answer.text()).toBe('{"ok":true}');
  });

  test.each(["gzip", "identity"])("counts for its account until it is read (%s)", async (encoding) => {
    const { held, from } = world();
    const headers = { "accept-encoding": encoding };
    const answers = Array.from({ length: 16 }, () => sendBytes(from("a", headers), new Uint8Array(4 * MIB), {}));
    expect(held()).toBe(64 * MIB);
    expect(() => sendBytes(from("a"), new Uint8Array(1), {})).toThrow("Too many large responses");
    expect(() => sendJson(from("a"), { small: true })).toThrow("Too many large responses");
    const other = sendBytes(from("b"), new Uint8Array(4 * MIB), {});
    for (const answer of [...answers.slice(1), other]) await answer.bytes();
    expect(held()).toBe(4 * MIB);
    await answers[0]?.body?.cancel();
    expect(held()).toBe(0);
  });

  test("of all callers together have a ceiling too", () => {
    const { from } = world();
    for (const owner of ["a", "b", "c", "d"]) sendBytes(from(owner), new Uint8Array(64 * MIB), {});
    expect(() => sendBytes(from("e"), new Uint8Array(1), {})).toThrow("Too many large responses");
  });

  test.each([
    [32 * 1024 - 1, null],
    [32 * 1024, "gzip"],
    [40 * 1024, "gzip"],
    [200 * 1024, "gzip"],
  ])("of %d bytes has the encoding %p", async (bytes, encoding) => {
    const { held, from } = world();
    const answer = sendText(from("a", { "accept-encoding": "gzip" }), "x".repeat(bytes), {});
    expect(answer.headers.get("content-encoding")).toBe(encoding);
    expect(held()).toBe(encoding === null ? 0 : bytes);
    const body = await answer.bytes();
    expect((encoding === null ? body : gunzipSync(body)).byteLength).toBe(bytes);
    expect(held()).toBe(0);
  });

  test("releases what is sent while the rest waits", async () => {
    const { held, from } = world();
    const answer = new TextResponse(from("a"));
    for (let piece = 0; piece < 4; piece++) answer.write("x".repeat(MIB));
    const reader = answer.send({}).body?.getReader();
    expect(held()).toBe(4 * MIB);
    for (let read = 0; read < 17; read++) await reader?.read();
    expect(held()).toBe(3 * MIB);
    await reader?.cancel();
    expect(held()).toBe(0);
  });

  test("written in texts of 64 KiB releases each when the next is read", async () => {
    const { held, from } = world();
    const answer = new TextResponse(from("a"));
    for (let piece = 0; piece < 4; piece++) answer.write("x".repeat(64 * 1024));
    const reader = answer.send({}).body?.getReader();
    await reader?.read();
    await reader?.read();
    expect(held()).toBe(3 * 64 * 1024);
    await reader?.cancel();
  });

  test("ends once, though its client disconnects while it is read", async () => {
    const gone = new AbortController();
    let ends = 0;
    const pieces = [new Uint8Array(10), new Uint8Array(10)];
    const request = new Request("http://localhost/", { signal: gone.signal });
    const reader = streamResponse(request, pieces, { headers: {}, end: () => void ends++ }).body?.getReader();
    await reader?.read();
    gone.abort();
    await reader?.read();
    await reader?.cancel();
    expect(ends).toBe(1);
  });

  test("to HEAD has its headers only, and counts for nothing", async () => {
    const { held, from } = world();
    const answer = sendBytes(from("a", {}, "HEAD"), new Uint8Array(MIB), { "content-type": "text/csv" });
    expect(answer.headers.get("content-type")).toBe("text/csv");
    expect(await answer.text()).toBe("");
    expect(held()).toBe(0);
  });

  test("to HEAD loses the length that the router computed from the empty body; other responses keep theirs", () => {
    const head = requestOf({}, "HEAD");
    sendBytes(head, new Uint8Array(MIB), {});
    const lengthFor = (request: Request) =>
      withoutWrongLength(request, new Response(null, { headers: { "content-length": "0" } })).headers.get(
        "content-length",
      );
    expect([lengthFor(head), lengthFor(requestOf({}, "HEAD"))]).toEqual([null, "0"]);
  });
});

test("HEAD says of a large answer what GET says, over a socket", async () => {
  const large: ServedRoute = {
    ...{ method: "GET", path: "/large" },
    serve: ({ request }) => sendBytes(request, new Uint8Array(MIB), { "content-type": "text/csv" }),
  };
  const surroundings = { log: silentLog, clock: createTestClock() };
  const application = createApplication({ ...surroundings, routes: [large] });
  const app = createServer({
    ...{ ...surroundings, clients: new ClientAddresses([]) },
    applicationOf: () => application,
  });
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: app.handle });
  for (const encoding of ["identity", "gzip"]) {
    const [head, get] = await Promise.all(
      ["HEAD", "GET"].map((method) =>
        fetch(new URL("/large", server.url), { method, headers: { "accept-encoding": encoding } }),
      ),
    );
    for (const name of ["content-length", "transfer-encoding", "content-encoding", "content-type", "vary"])
      expect([name, head?.headers.get(name)]).toEqual([name, get?.headers.get(name)]);
    expect(await head?.text()).toBe("");
    await get?.body?.cancel();
  }
  await server.stop(true);
});

describe("rows that are written while they are read", () => {
  const endless = () => {
    const state = { written: 0, isEnded: false };
    async function* generate(): AsyncGenerator<Uint8Array, void> {
      try {
        for (;;) {
          state.written++;
          yield new Uint8Array(100_000);
        }
      } finally {
        state.isEnded = true;
      }
    }
    return { state, rows: generate() };
  };

  test.each(["gzip", "identity"])("end when the reader goes away (%s)", async (encoding) => {
    const { held, from } = world();
    const { state, rows } = endless();
    const answer = streamRows(from("a", { "accept-encoding": encoding }), rows, {});
    expect(held()).toBe(MIB);
    const reader = answer.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    for (let turn = 0; turn < 1_000 && !state.isEnded; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(state.isEnded).toBe(true);
    expect(held()).toBe(0);
  });

  test("that fail break the answer off, and are given back", async () => {
    const { held, from } = world();
    async function* failing(): AsyncGenerator<Uint8Array, void> {
      yield new Uint8Array(10);
      throw new Error("broken");
    }
    for (const encoding of ["gzip", "identity"]) {
      const answer = streamRows(from("a", { "accept-encoding": encoding }), failing(), {});
      await expect(answer.bytes()).rejects.toThrow();
      expect(held()).toBe(0);
    }
  });

  test("beyond 64 of an account are to come again", () => {
    const { from } = world();
    for (let n = 0; n < 64; n++) streamRows(from("a"), endless().rows, {});
    expect(() => streamRows(from("a"), endless().rows, {})).toThrow("Too many large responses");
    streamRows(from("b"), endless().rows, {});
  });

  test("may have empty pieces, which do not end it", async () => {
    async function* generate(): AsyncGenerator<Uint8Array, void> {
      for (const text of ["a", "", "b"]) yield new TextEncoder().encode(text);
    }
    expect(await streamRows(requestOf(), generate(), {}).text()).toBe("ab");
    const chunks: string[] = [];
    for await (const chunk of streamRows(requestOf(), generate(), {}).body ?? [])
      chunks.push(Buffer.from(chunk).toString());
    expect(chunks).toEqual(["a", "b"]);
  });

  test("whose caller is gone before the first is read are given back", () => {
    const budgets = createBudgets(createTestClock());
    const gone = new AbortController();
    const request = new Request("http://localhost/", { signal: gone.signal });
    trackRequest(request, "a", budgets);
    streamRows(request, endless().rows, {});
    expect(budgets.answers.held).toBe(MIB);
    gone.abort();
    expect(budgets.answers.held).toBe(0);
  });
});

test.each([
  ["customers-results", 'attachment; filename="customers-results.csv"'],
  ["Kunden München", `attachment; filename="Kunden Munchen.csv"; filename*=UTF-8''Kunden%20M%C3%BCnchen.csv`],
  ["客户", `attachment; filename="__.csv"; filename*=UTF-8''%E5%AE%A2%E6%88%B7.csv`],
  ["../../etc/passwd", 'attachment; filename="etc passwd.csv"'],
  ['a"; filename="x.exe', 'attachment; filename="a ; filename= x.exe.csv"'],
  ["a\r\nSet-Cookie: x=y", 'attachment; filename="a Set-Cookie x=y.csv"'],
  ["50%41", `attachment; filename="50_41.csv"; filename*=UTF-8''50%2541.csv`],
  ["it's (1)*", `attachment; filename="it's (1).csv"`],
  ["\u202egpj", 'attachment; filename="gpj.csv"'],
  [" . ", 'attachment; filename="download.csv"'],
])("%j is %s", (name, value) => {
  expect(attachment(name, ".csv")).toBe(value);
});

test("is one bounded line of printable ASCII, whatever the name", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (name) => {
      const value = attachment(name, ".csv");
      expect(value).toMatch(/^attachment; filename="[\x20-\x7e]*"(?:; filename\*=UTF-8''[\w.%~-]+)?$/);
      expect(value.length).toBeLessThan(2_000);
    }),
  );
});
