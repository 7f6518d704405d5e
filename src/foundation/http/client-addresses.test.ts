import { expect, test } from "bun:test";
import { ClientAddresses } from "./client-addresses.ts";

const start = (peer: string, trusted: readonly string[] = []) => {
  const warned: unknown[] = [];
  const clients = new ClientAddresses(trusted, { warn: (_, fields) => void warned.push(fields?.proxy) });
  clients.attach({ requestIP: () => ({ address: peer, port: 1, family: "IPv4" }) });
  const of = (forwardedFor?: string) =>
    clients.of(
      new Request("http://localhost/", {
        headers: forwardedFor === undefined ? {} : { "x-forwarded-for": forwardedFor },
      }),
    );
  return { of, warned };
};

test.each([
  ["127.0.0.1", "203.0.113.9"],
  ["::1", "203.0.113.9"],
  ["192.168.1.2", "not an address"],
])("a proxy at %s that is not trusted is named once, and is the client", (peer, forwardedFor) => {
  const { of, warned } = start(peer);
  for (let n = 0; n < 3; n++) expect(of(forwardedFor)).toBe(peer);
  expect(warned).toEqual([peer]);
});

test.each([
  ["a trusted proxy", "127.0.0.1", "203.0.113.9", ["127.0.0.0/8"]],
  ["a trusted proxy that sends nonsense", "127.0.0.1", "nonsense", ["127.0.0.0/8"]],
  ["a client of one's own network", "192.168.1.2", undefined, []],
  ["a client from elsewhere that sends the header", "198.51.100.7", "203.0.113.9", []],
] as const)("nothing is said of %s", (_, peer, forwardedFor, trusted) => {
  const { of, warned } = start(peer, trusted);
  expect(of(forwardedFor)).toBe(trusted.length > 0 && forwardedFor === "203.0.113.9" ? forwardedFor : peer);
  expect(warned).toEqual([]);
});
