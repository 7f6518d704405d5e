import { describe, expect, test } from "bun:test";
import { createClientAddress } from "./client-addresses.ts";

const clientOf = createClientAddress(["10.0.0.0/8", "192.0.2.1", "fd00::/8"]);

describe("the client", () => {
  test.each([
    ["is the peer, without proxies", "198.51.100.7", null, "198.51.100.7"],
    ["is a peer that nobody trusts, whatever he says", "198.51.100.7", "203.0.114.9", "198.51.100.7"],
    ["is whom a trusted peer names", "10.1.2.3", "203.0.114.9", "203.0.114.9"],
    ["is whom a trusted peer of one address names", "192.0.2.1", "203.0.114.9", "203.0.114.9"],
    ["is the right-most that is not trusted", "10.1.2.3", "1.1.1.1, 203.0.114.9, 10.9.9.9", "203.0.114.9"],
    ["is the farthest proxy when all are trusted", "10.1.2.3", "10.0.0.1, 10.0.0.2", "10.0.0.1"],
    ["is the trusted peer when he names nobody", "10.1.2.3", null, "10.1.2.3"],
    ["is the trusted peer when he names nobody in words", "10.1.2.3", "", "10.1.2.3"],
    ["is the last who vouched when the next is no address", "10.1.2.3", "203.0.114.9, unknown, 10.9.9.9", "10.9.9.9"],
    ["is no text that could forge a line", "10.1.2.3", '1.1.1.1"\n{"level":"error"}', "10.1.2.3"],
    ["may be written with a port", "10.1.2.3", "203.0.114.9:5060", "203.0.114.9"],
    ["may be written in brackets, with a port", "10.1.2.3", "[2001:db8::9]:5060", "2001:db8::9"],
    ["may be IPv6 behind an IPv6 proxy", "fd00::1", "2001:DB8::9", "2001:db8::9"],
    ["behind a peer in IPv6 clothes is the same", "::ffff:10.1.2.3", "203.0.114.9", "203.0.114.9"],
    ["in IPv6 clothes is shown in its own", "::ffff:198.51.100.7", null, "198.51.100.7"],
  ])("%s", (_, peer, forwardedFor, client) => {
    expect(clientOf(peer, forwardedFor)).toBe(client);
  });

  test("behind a list without end is looked for in its last part only", () => {
    expect(clientOf("10.1.2.3", `203.0.114.9${", 10.0.0.1".repeat(100)}`)).toBe("10.0.0.1");
  });

  test("a network in IPv6 clothes is the IPv4 network it means", () => {
    expect(createClientAddress(["::ffff:10.0.0.0/104"])("10.1.2.3", "203.0.114.9")).toBe("203.0.114.9");
  });
});
