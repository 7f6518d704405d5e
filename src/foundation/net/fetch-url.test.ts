import { describe, expect, test, afterEach } from "bun:test";
import fc from "fast-check";
import { createUrlPolicy, RESPONSE_BYTES_MAX, createGetter, createPoster, POST_TIMEOUT_MS } from "./fetch-url.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createZoneResolver, type Zone } from "../../testing/dns-zone.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../../testing/smtp-stub-key.ts";

const open = createUrlPolicy([]);
const lab = createUrlPolicy(["127.0.0.0/8", "10.0.0.0/8", "::1/128"]);

describe("on the public internet only", () => {
  test.each([
    ["https://example.com/hook", "example.com", 443],
    ["https://example.com:8443/hook?x=1", "example.com", 8443],
    ["https://example.com:443/", "example.com", 443],
    ["https://example.com:1024/", "example.com", 1_024],
    ["https://example.com:65535/", "example.com", 65_535],
    ["HTTPS://EXAMPLE.com", "example.com", 443],
    ["https://8.8.8.8/", "8.8.8.8", 443],
    ["https://[2606:4700::1111]/", "2606:4700::1111", 443],
    ["https://bücher.example.com/", "xn--bcher-kva.example.com", 443],
  ])("%s is taken", (text, host, port) => {
    expect(open.parse(text)).toMatchObject({ ok: true, value: { host, port, isSecure: true } });
  });

  test.each([
    ["http://example.com/", "https"],
    ["file:///etc/passwd", "URL such as"],
    ["gopher://example.com/", "URL such as"],
    ["https:example.com", "URL such as"],
    ["//example.com/", "URL such as"],
    ["example.com/hook", "URL such as"],
    ["", "URL such as"],
    ["https://exa mple.com/", "URL such as"],
    ["https://example.com\\@127.0.0.1/", "URL such as"],
    ["https://example.com/\n", "URL such as"],
    [`https://example.com/${"x".repeat(2_048)}`, "URL such as"],
    ["https://user:secret@example.com/", "user name"],
    ["https://user@example.com/", "user name"],
    ["https://example.com/#a", "fragment"],
    ["https://example.com:22/", "port 22"],
    ["https://example.com:25/", "port 25"],
    ["https://example.com:0/", "port 0"],
    ...[1, 79, 80, 81, 90, 110, 389, 442, 444, 445, 465, 587, 636, 993, 1_023].map(
      (port) => [`https://example.com:${port}/`, `port ${port} `] as const,
    ),
    ["https://example.com:65536/", "URL such as"],
    ["https://localhost/", "public host"],
    ["https://intranet./", "public host"],
    ["https://127.0.0.1/", "127.0.0.1"],
    ["https://127.1/", "127.0.0.1"],
    ["https://2130706433/", "127.0.0.1"],
    ["https://0x7f.0x1/", "127.0.0.1"],
    ["https://0x7f000001/", "127.0.0.1"],
    ["https://0177.0.0.1/", "127.0.0.1"],
    ["https://127.0.0.1./", "127.0.0.1"],
    ["https://１２７.0.0.1/", "127.0.0.1"],
    ["https://0/", "0.0.0.0"],
    ["https://10.1.2.3/", "10.1.2.3"],
    ["https://169.254.169.254/latest/meta-data/", "169.254.169.254"],
    ["https://[::1]/", "::1"],
    ["https://[::]/", "::"],
    ["https://[::ffff:127.0.0.1]/", "::ffff:7f00:1"],
    ["https://[::ffff:a9fe:a9fe]/", "::ffff:a9fe:a9fe"],
    ["https://[64:ff9b::7f00:1]/", "64:ff9b::7f00:1"],
    ["https://[fd00::1]/", "fd00::1"],
    ["https://[fe80::1]/", "fe80::1"],
    ["https://168.63.129.16/", "168.63.129.16"],
  ])("%p is refused, and the sentence says why", (text, reason) => {
    const read = open.parse(text);
    expect(read).toMatchObject({ ok: false, error: { kind: "url_refused" } });
    expect(read.ok ? "" : read.error.problem).toContain(reason);
  });

  test("a refusal never repeats a password", () => {
    const read = open.parse("https://user:hunter2@example.com/");
    expect(JSON.stringify(read)).not.toContain("hunter2");
  });
});

describe("with allowed networks", () => {
  test.each([
    "http://127.0.0.1:8080/",
    "http://[::1]:8080/",
    "https://10.0.0.7/",
    "http://receiver:8080/",
    "http://hook.example.com/",
  ])("%s is taken, for its host may lie in them", (text) => expect(lab.parse(text).ok).toBe(true));

  test.each([
    "http://8.8.8.8/",
    "http://192.168.0.1/",
    "https://192.168.0.1/",
    "http://127.0.0.1:25/",
    "http://127.0.0.1:443/",
  ])("%s is refused all the same", (text) => expect(lab.parse(text).ok).toBe(false));

  test("an address outside them is connected to over TLS only, a private one outside them never", () => {
    expect(lab.mayConnect("8.8.8.8", true)).toBe(true);
    expect(lab.mayConnect("8.8.8.8", false)).toBe(false);
    expect(lab.mayConnect("127.0.0.9", false)).toBe(true);
    expect(lab.mayConnect("::ffff:127.0.0.9", false)).toBe(true);
    expect(lab.mayConnect("192.168.0.1", true)).toBe(false);
    expect(lab.mayConnect("fe80::1%lo", true)).toBe(false);
    expect(lab.mayConnect("no address", true)).toBe(false);
  });
});

test("whatever is accepted survives being read again, and never leads to a literal that is not public", () => {
  const part = fc.constantFrom(
    "https://",
    "http://",
    "127.0.0.1",
    "0x7f",
    ".",
    "1",
    "[::1]",
    "@",
    ":",
    "/",
    "a.com",
    "%31",
    "٣",
    "\\",
    "#",
    "?",
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), fc.string(), (parts, tail) => {
      for (const text of [parts.join(""), `https://${parts.join("")}`, `https://${tail}`]) {
        const read = open.parse(text);
        if (!read.ok) continue;
        expect(open.parse(read.value.href)).toEqual(read);
        expect(read.value.isSecure).toBe(true);
        if (read.value.isLiteral) expect(open.mayConnect(read.value.host, true)).toBe(true);
      }
    }),
  );
});

interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const receiver = (answer: () => Response | Promise<Response>, { tls = false, hostname = "127.0.0.1" } = {}) => {
  const received: Received[] = [];
  const server = Bun.serve({
    port: 0,
    hostname,
    ...(tls ? { tls: { key: TEST_KEY, cert: TEST_CERTIFICATE } } : {}),
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const body = await request.text();
      received.push({ method: request.method, path: pathname + search, headers: request.headers, body });
      return answer();
    },
  });
  stops.push(() => void server.stop(true));
  return { received, port: server.port ?? 0 };
};

const posterIn = (zone: Zone, options: { networks?: readonly string[]; ca?: string } = {}) => {
  const clock = createTestClock();
  const { networks = ["127.0.0.0/8"], ...rest } = options;
  const resolver = createZoneResolver(zone);
  const post = createPoster({ clock, resolver, rules: createUrlPolicy(networks), ...rest });
  return { clock, resolver, send: (url: string) => post({ url, headers: { "x-one": "1" }, body: "{}" }) };
};

const ok = () => new Response("taken");

describe("a post", () => {
  test("reaches the address that its host has, under the host's name", async () => {
    const { received, port } = receiver(ok);
    const { send, clock } = posterIn({ "hook.example.com": { A: ["127.0.0.1"] } });
    const answer = await send(`http://hook.example.com:${port}/a/b?c=%20d`);
    expect(answer).toEqual({ ok: true, value: { status: 200, body: "taken", retryAfter: null } });
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({ method: "POST", path: "/a/b?c=%20d", body: "{}" });
    expect(received[0]?.headers.get("host")).toBe(`hook.example.com:${port}`);
    expect(received[0]?.headers.get("x-one")).toBe("1");
    expect(clock.pending()).toBe(0);
  });

  test("asks no DNS for an address", async () => {
    const { port } = receiver(ok);
    const { send, resolver } = posterIn({});
    expect(await send(`http://127.0.0.1:${port}/`)).toMatchObject({ ok: true });
    expect(resolver.queries).toEqual([]);
  });

  test("knows where localhost is, and asks nobody", async () => {
    const { received, port } = receiver(ok);
    const { send, resolver } = posterIn({});
    for (const host of ["localhost", "hook.localhost"])
      expect(await send(`http://${host}:${port}/`)).toMatchObject({ ok: true });
    expect(resolver.queries).toEqual([]);
    expect(received[0]?.headers.get("host")).toBe(`localhost:${port}`);
    expect(await posterIn({}, { networks: [] }).send("https://hook.localhost/")).toMatchObject({
      ok: false,
      error: { kind: "address_refused" },
    });
  });

  test("reaches an IPv6 address", async () => {
    const { port } = receiver(ok, { hostname: "::1" });
    expect(await posterIn({}, { networks: ["::1/128"] }).send(`http://[::1]:${port}/`)).toMatchObject({ ok: true });
  });

  test("over TLS to an address needs a certificate for that address", async () => {
    const { received, port } = receiver(ok, { tls: true });
    const { send } = posterIn({}, { ca: TEST_CERTIFICATE });
    expect(await send(`https://127.0.0.1:${port}/`)).toMatchObject({ ok: false, error: { kind: "connection" } });
    expect(received).toEqual([]);
  });

  test("over TLS goes to the checked address, and the certificate is that of the name", async () => {
    const { received, port } = receiver(ok, { tls: true });
    const { send } = posterIn({ "mx.example.test": { A: ["127.0.0.1"] } }, { ca: TEST_CERTIFICATE });
    expect(await send(`https://mx.example.test:${port}/`)).toMatchObject({ ok: true, value: { status: 200 } });
    expect(received).toHaveLength(1);
  });

  test.each([
    ["of another name", "other.example.test", TEST_CERTIFICATE, "the certificate is for another name."],
    ["of nobody who is trusted", "mx.example.test", undefined, "the certificate is self-signed."],
  ])("sends nothing to a certificate %s", async (_, host, ca, words) => {
    const { received, port } = receiver(ok, { tls: true });
    const { send } = posterIn({ [host]: { A: ["127.0.0.1"] } }, ca === undefined ? {} : { ca });
    expect(await send(`https://${host}:${port}/`)).toMatchObject({
      ok: false,
      error: { kind: "connection", problem: expect.stringContaining(words) },
    });
    expect(received).toEqual([]);
  });

  test("does not follow a redirect", async () => {
    const inside = receiver(ok);
    const { port } = receiver(() => Response.redirect(`http://127.0.0.1:${inside.port}/`, 307));
    const { send } = posterIn({});
    expect(await send(`http://127.0.0.1:${port}/`)).toMatchObject({ ok: true, value: { status: 307 } });
    expect(inside.received).toEqual([]);
  });

  test("reads 64 KiB of an endless answer and no more", async () => {
    const chunk = "x".repeat(10_000);
    const { port } = receiver(() => new Response(new ReadableStream({ pull: (stream) => stream.enqueue(chunk) })));
    const answer = await posterIn({}).send(`http://127.0.0.1:${port}/`);
    expect(answer.ok && answer.value.body.length).toBe(RESPONSE_BYTES_MAX);
  });

  test("gives a receiver that hangs 15 seconds", async () => {
    const reached = Promise.withResolvers<void>();
    const { port } = receiver(() => {
      reached.resolve();
      return Promise.withResolvers<Response>().promise;
    });
    const { send, clock } = posterIn({});
    const sent = send(`http://127.0.0.1:${port}/`);
    await reached.promise;
    await clock.advance(POST_TIMEOUT_MS);
    expect(await sent).toMatchObject({ ok: false, error: { kind: "timeout" } });
  });

  test("tries the next address when one refuses the connection", async () => {
    const { received, port } = receiver(ok, { hostname: "127.0.0.2" });
    const { send } = posterIn({ "hook.example.com": { A: ["127.0.0.1", "127.0.0.2"] } });
    expect(await send(`http://hook.example.com:${port}/`)).toMatchObject({ ok: true });
    expect(received).toHaveLength(1);
  });

  test("says that nobody listens", async () => {
    const { port } = receiver(ok);
    for (const stop of stops.splice(0)) stop();
    expect(await posterIn({}).send(`http://127.0.0.1:${port}/`)).toMatchObject({
      ok: false,
      error: { kind: "connection" },
    });
  });
});

describe("nothing is sent", () => {
  test("to a host that moved to a private address since the last time", async () => {
    const { received, port } = receiver(ok);
    const zone: Record<string, { A: string[] }> = { "hook.example.com": { A: ["127.0.0.1"] } };
    const { send } = posterIn(zone, { networks: ["127.0.0.1/32"] });
    expect(await send(`http://hook.example.com:${port}/`)).toMatchObject({ ok: true });
    zone["hook.example.com"] = { A: ["127.0.0.2"] };
    expect(await send(`http://hook.example.com:${port}/`)).toMatchObject({
      ok: false,
      error: { kind: "address_refused", problem: expect.stringContaining("127.0.0.2") },
    });
    expect(received).toHaveLength(1);
  });

  test.each([
    ["a second A record", { A: ["127.0.0.1", "10.0.0.1"] }],
    ["an AAAA record", { A: ["127.0.0.1"], AAAA: ["::1"] }],
    ["a mapped AAAA record", { A: ["127.0.0.1"], AAAA: ["::ffff:169.254.169.254"] }],
  ])("to a host of which %s is private", async (_, records) => {
    const { received, port } = receiver(ok);
    const { send } = posterIn({ "hook.example.com": records });
    expect(await send(`http://hook.example.com:${port}/`)).toMatchObject({
      ok: false,
      error: { kind: "address_refused" },
    });
    expect(received).toEqual([]);
  });

  test("without TLS to a public address, though http is possible in the allowed networks", async () => {
    const { send } = posterIn({ "hook.example.com": { A: ["8.8.8.8"] } });
    expect(await send("http://hook.example.com/")).toMatchObject({ ok: false, error: { kind: "address_refused" } });
  });

  test.each([
    ["nxdomain", "has no address"],
    ["unconfirmed", "could not be resolved"],
    ["servfail", "could not be resolved"],
    ["timeout", "could not be resolved"],
  ] as const)("when the DNS says %s", async (outcome, words) => {
    const answer = await posterIn({ "hook.example.com": outcome }).send("https://hook.example.com/");
    expect(answer).toMatchObject({ ok: false, error: { kind: "dns", problem: expect.stringContaining(words) } });
  });

  test("to a URL that the rules refuse", async () => {
    expect(await posterIn({}).send("file:///etc/passwd")).toMatchObject({ ok: false, error: { kind: "url_refused" } });
  });
});

describe("a GET", () => {
  const getIn = (zone: Zone, networks: readonly string[] = ["127.0.0.0/8"]) =>
    createGetter({
      clock: createTestClock(),
      resolver: createZoneResolver(zone),
      rules: createUrlPolicy(networks),
    });

  test("answers the document with its type, whole or not", async () => {
    const headers = { "content-type": "Text/Plain; charset=utf-8" };
    const { received, port } = receiver(() => new Response("a policy", { headers }));
    const url = `http://127.0.0.1:${port}/a?b`;
    const got = await getIn({})({ url, headers: { accept: "text/plain" } });
    expect(got).toEqual({
      ok: true,
      value: { status: 200, body: "a policy", isWhole: true, contentType: "text/plain" },
    });
    expect(received[0]).toMatchObject({ method: "GET", path: "/a?b", body: "" });
    const large = receiver(() => new Response("x".repeat(RESPONSE_BYTES_MAX + 1)));
    const cut = await getIn({})({ url: `http://127.0.0.1:${large.port}/`, headers: {} });
    expect(cut).toMatchObject({ ok: true, value: { isWhole: false } });
    expect(cut.ok && cut.value.body.length).toBe(RESPONSE_BYTES_MAX);
  });

  test("is not sent to a private address, nor after the caller gave it up", async () => {
    const { received, port } = receiver(ok);
    const headers = {};
    const zone = { "host.example.com": { A: ["127.0.0.1"] } };
    const refused = await getIn(zone, [])({ url: `https://host.example.com:${port}/`, headers });
    expect(refused).toMatchObject({ ok: false, error: { kind: "address_refused" } });
    const gone = await getIn(zone)({ url: `http://host.example.com:${port}/`, headers, signal: AbortSignal.abort() });
    expect(gone).toMatchObject({ ok: false, error: { kind: "aborted" } });
    expect(received).toEqual([]);
  });

  test("tells an invalid certificate from a connection that fails", async () => {
    const { received, port } = receiver(ok, { tls: true });
    const get = getIn({ "mx.example.test": { A: ["127.0.0.1"] } });
    const url = `https://mx.example.test:${port}/`;
    expect(await get({ url, headers: {} })).toMatchObject({ ok: false, error: { kind: "certificate" } });
    expect(received).toEqual([]);
    for (const stop of stops.splice(0)) stop();
    expect(await get({ url, headers: {} })).toEqual({
      ok: false,
      error: { kind: "connection", problem: "The connection failed (ECONNREFUSED): Unable to connect." },
    });
  });
});

test("NODE_TLS_REJECT_UNAUTHORIZED=0 does not turn the check of certificates off", async () => {
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  try {
    const { port, received } = receiver(() => new Response(), { tls: true });
    const probe = await fetch(`https://127.0.0.1:${port}/`);
    // The variable is in force: a request that says nothing about certificates arrives.
    expect([probe.status, received.length]).toEqual([200, 1]);
    const { send } = posterIn({ "hook.example": { A: ["127.0.0.1"] } });
    const answer = await send(`https://hook.example:${port}/`);
    expect(answer).toMatchObject({ ok: false, error: { kind: "connection" } });
    expect(received).toHaveLength(1);
  } finally {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
  }
});
