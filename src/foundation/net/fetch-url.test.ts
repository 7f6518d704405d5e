import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createUrlPolicy } from "./fetch-url.ts";

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
