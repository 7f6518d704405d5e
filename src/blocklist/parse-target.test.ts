import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseTarget } from "./parse-target.ts";

describe("a target", () => {
  test.each([
    ["8.8.8.8", "ipv4", "8.8.8.8"],
    [" 8.8.8.8 ", "ipv4", "8.8.8.8"],
    ["[8.8.8.8]", "ipv4", "8.8.8.8"],
    ["::ffff:8.8.8.8", "ipv4", "8.8.8.8"],
    ["2606:4700:4700:0:0:0:0:1111", "ipv6", "2606:4700:4700::1111"],
    ["2A00:1450:4001:081B::200E", "ipv6", "2a00:1450:4001:81b::200e"],
    ["[IPv6:2606:4700::1]", "ipv6", "2606:4700::1"],
    ["Example.COM", "domain", "example.com"],
    ["example.com.", "domain", "example.com"],
    ["mail.example.co.uk", "domain", "mail.example.co.uk"],
    ["bücher.de", "domain", "xn--bcher-kva.de"],
    ["BÜCHER.DE", "domain", "xn--bcher-kva.de"],
    ["xn--bcher-kva.de", "domain", "xn--bcher-kva.de"],
    ["1and1.com", "domain", "1and1.com"],
    ["someone.github.io", "domain", "someone.github.io"],
  ] as const)("%p is the %s %s", (text, kind, value) => {
    expect(parseTarget(text, "live")).toEqual({ ok: true, value: { kind, value } });
  });

  test.each([
    ["http://example.com/", "http://"],
    ["example.com/path", "path"],
    ["ok.com/", "path"],
    ["ok.com/24", "path"],
    ["user@example.org/x", "path"],
    ["64:ff9b::8.8.8.8", "carries an IPv4"],
    ["64:ff9b::808:808", "not a public"],
    ["2002:808:808::1", "not a public"],
    ["2001:0:808:808::f7f7:f7f7", "not a public"],
    ["8.8.8.0/24", "ranges"],
    ["2606:4700::/32", "ranges"],
    ["1.2.3", "Not a domain or IP address"],
    ["01.02.03.04", "Not a domain or IP address"],
    ["1.2.3.4.5", "Not a domain or IP address"],
    ["256.1.1.1", "Not a domain or IP address"],
    ["2130706433", "Not a domain or IP address"],
    ["8.8.8.8:25", "Not a domain or IP address"],
    ["fe80::1%eth0", "Not a domain or IP address"],
    ["[example.com]", "Not a domain or IP address"],
    ["127.0.0.1", "not a public"],
    ["10.0.0.1", "not a public"],
    ["192.0.2.1", "not a public"],
    ["169.254.169.254", "not a public"],
    ["::1", "not a public"],
    ["2001:db8::1", "not a public"],
    ["::ffff:10.0.0.1", "not a public"],
    ["localhost", "single label"],
    ["com", "single label"],
    ["co.uk", "public suffix"],
    ["github.io", "public suffix"],
    ["mail.localhost", ".localhost"],
    ["printer.local", ".local"],
    ["host.internal", ".internal"],
    ["router.home.arpa", ".home.arpa"],
    ["listed.example", "test keys"],
    ["someone@example.com", "after the @"],
    ["exa mple.com", "Not a domain: it has white space inside."],
    ["exa_mple.com", "Not a domain"],
    ["-a.com", "Not a domain"],
    ["a..com", "Not a domain"],
    [".example.com", "Not a domain"],
    ["example.com..", "Not a domain"],
    ["*.example.com", "Not a domain"],
    ["a.123", "Not a domain"],
    [`${"a".repeat(64)}.com`, "Not a domain"],
    [`${"a.".repeat(150)}com`, "Not a domain"],
    ["💩.la", "emoji"],
    ["xn--ls8h.la", "emoji"],
    ["", "Not a domain"],
  ])("%p is refused with a sentence", (text, words) => {
    const read = parseTarget(text, "live");
    expect(read.ok ? read.value : read.error).toContain(words as never);
  });

  test("under .example is for test keys", () => {
    expect(parseTarget("Listed.Example", "test")).toEqual({
      ok: true,
      value: { kind: "domain", value: "listed.example" },
    });
    expect(parseTarget("1.2.3.4", "test")).toEqual({ ok: true, value: { kind: "ipv4", value: "1.2.3.4" } });
  });

  test("in its normal form is read as itself", () => {
    const text = fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6(), fc.string());
    fc.assert(
      fc.property(text, (given) => {
        const read = parseTarget(given, "live");
        if (read.ok) expect(parseTarget(read.value.value, "live")).toEqual(read);
      }),
    );
  });
});
