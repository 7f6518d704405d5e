import { describe, expect, test } from "bun:test";
import { parseMonitoredDomain } from "./domain-platform.ts";

describe("a domain is read in its normal form", () => {
  test.each([
    ["example.com", "example.com"],
    [" Example.COM. ", "example.com"],
    ["news.shop.example.co.uk", "news.shop.example.co.uk"],
    ["münchen.de", "xn--mnchen-3ya.de"],
    ["xn--mnchen-3ya.de", "xn--mnchen-3ya.de"],
    ["somebody.github.io", "somebody.github.io"],
    ["example.notyetatld", "example.notyetatld"],
  ])("%p", (text, domain) => {
    expect(parseMonitoredDomain(text, "live")).toEqual({ ok: true, value: domain });
  });
});

describe("what is no domain to monitor is refused with a reason", () => {
  test.each([
    ["", "Must be a domain"],
    ["  ", "Must be a domain"],
    ["com", "single label"],
    ["co.uk", "public suffix"],
    ["github.io", "public suffix"],
    ["192.0.2.1", "IP address"],
    ["2001:db8::1", "IP address"],
    ["[192.0.2.1]", "IP address"],
    ["1.2.3", "digits"],
    ["postmaster@example.com", "domain only"],
    ["https://example.com/", "without http"],
    ["example.com/path", "path"],
    ["example.com:25", "port"],
    ["*.example.com", "below it"],
    ["_dmarc.example.com", "about: example.com."],
    ["_DMARC.example.com.", "about: example.com."],
    ["selector._domainkey.example.com", "underscore"],
    ["example..com", "two dots"],
    ["example.com..", "dot"],
    [".example.com", "begins with a dot"],
    ["-x.com", "hyphen"],
    ["exa mple.com", "it has white space"],
    [`${"a".repeat(64)}.com`, "63 octets"],
    [`${"a.".repeat(130)}com`, "253 octets"],
    ["localhost", "single label"],
    ["a.localhost", ".localhost"],
    ["a.test", ".test"],
    ["a.invalid", ".invalid"],
    ["printer.local", ".local"],
    ["a.onion", ".onion"],
    ["a.internal", ".internal"],
    ["1.168.192.in-addr.arpa", ".arpa"],
    ["shop.example", "test keys only"],
  ])("%p", (text, reason) => {
    const parsed = parseMonitoredDomain(text, "live");
    expect(parsed.ok ? parsed.value : parsed.error).toContain(reason);
    expect(parsed.ok).toBe(false);
  });
});

test("names under .example are for test keys, the ending itself for nobody", () => {
  expect(parseMonitoredDomain("merge.example", "test")).toEqual({ ok: true, value: "merge.example" });
  expect(parseMonitoredDomain("example", "test").ok).toBe(false);
});
