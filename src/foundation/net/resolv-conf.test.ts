import { expect, test } from "bun:test";
import fc from "fast-check";
import { formatServer } from "./dns.ts";
import { parseDnsServers, parseResolvConf } from "./resolv-conf.ts";

const listed = (text: string) => parseResolvConf(text).map(formatServer);

test.each([
  [
    "a usual file",
    "# made by x\nsearch example.com\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n",
    ["192.0.2.1:53", "192.0.2.2:53"],
  ],
  ["tabs, spaces, CRLF, text after the address", "\tnameserver\t192.0.2.1  # main\r\n", ["192.0.2.1:53"]],
  [
    "IPv6, with and without a zone",
    "nameserver 2001:db8::1\nnameserver fe80::1%eth0",
    ["[2001:db8::1]:53", "[fe80::1%eth0]:53"],
  ],
  [
    "comments and options",
    ";nameserver 192.0.2.9\n#nameserver 192.0.2.8\noptions timeout:1 attempts:5\nnameserver 192.0.2.1",
    ["192.0.2.1:53"],
  ],
  [
    "only the first three",
    [1, 2, 3, 4].map((n) => `nameserver 192.0.2.${n}`).join("\n"),
    ["192.0.2.1:53", "192.0.2.2:53", "192.0.2.3:53"],
  ],
  ["a repeated server counts once", "nameserver 192.0.2.1\nnameserver 192.0.2.1", ["192.0.2.1:53"]],
  [
    "lines that cannot be read are passed over",
    "nameserver ns.example.com\nnameserver\nnameservers 192.0.2.1\nnameserver 192.0.2.2",
    ["192.0.2.2:53"],
  ],
  ["an empty file means this machine", "", ["127.0.0.1:53"]],
  ["a file without servers means this machine", "search example.com\n", ["127.0.0.1:53"]],
])("resolv.conf: %s", (_, text, expected) => expect(listed(text)).toEqual(expected));

test("resolv.conf: arbitrary text gives one to three servers", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 500 }), (text) => {
      const servers = parseResolvConf(text);
      expect(servers.length >= 1 && servers.length <= 3).toBe(true);
    }),
  );
});

test.each([
  ["192.0.2.1", ["192.0.2.1:53"]],
  ["192.0.2.1:5353", ["192.0.2.1:5353"]],
  ["2001:db8::1", ["[2001:db8::1]:53"]],
  ["[2001:db8::1]", ["[2001:db8::1]:53"]],
  ["[2001:db8::1]:5353", ["[2001:db8::1]:5353"]],
  ["fe80::1%eth0", ["[fe80::1%eth0]:53"]],
  ["[fe80::1%eth0]:54", ["[fe80::1%eth0]:54"]],
  [" 192.0.2.1 , [2001:db8::1]:1 ", ["192.0.2.1:53", "[2001:db8::1]:1"]],
])("setting %p", (text, expected) => {
  const parsed = parseDnsServers(text);
  expect(parsed.ok ? parsed.value.map(formatServer) : parsed.error).toEqual(expected);
});

test.each([
  "",
  "ns.example.com",
  "192.0.2.1,",
  "192.0.2.1:0",
  "192.0.2.1:65536",
  "192.0.2.1:",
  "[192.0.2.1]:53",
  "[2001:db8::1",
  "192.0.2.256",
  "udp://192.0.2.1",
  "192.0.2.1 192.0.2.2",
])("setting %p is refused with a sentence", (text) => {
  const parsed = parseDnsServers(text);
  expect(parsed.ok ? "accepted" : parsed.error.problem).toContain("is not a name server");
});

test("more than eight servers are refused", () => {
  const parsed = parseDnsServers(Array.from({ length: 9 }, (_, n) => `192.0.2.${n}`).join(","));
  expect(parsed.ok ? "accepted" : parsed.error.problem).toBe("At most 8 name servers can be given.");
});
