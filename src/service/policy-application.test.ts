import { expect, test } from "bun:test";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createPolicyApplication } from "./policy-application.ts";

const TRUSTED = ["203.0.113.0/24"];
const NAME = "mta-sts.example.com";
const served = { textOf: (host: string) => (host === NAME ? "version: STSv1" : null) };

const ask = async (peer: string, domain: string | null, headers: Readonly<Record<string, string>> = {}) => {
  const clients = new ClientAddresses(TRUSTED);
  clients.attach({ requestIP: () => ({ address: peer, port: 1, family: "IPv4" }) });
  const query = domain === null ? "" : `?domain=${domain}`;
  const request = new Request(`http://127.0.0.1:8080/mta-sts/ask${query}`, { headers });
  return (await createPolicyApplication(served, clients).fetch(request)).status;
};

test.each([
  ["this machine", "127.0.0.1", NAME, {}, 200],
  ["this machine, over IPv6", "::1", NAME, {}, 200],
  ["this machine, with an IPv4 address in IPv6", "::ffff:127.0.0.1", NAME, {}, 200],
  ["a trusted proxy", "203.0.113.7", NAME, {}, 200],
  ["this machine, in capitals", "127.0.0.1", "MTA-STS.Example.com", {}, 200],
  ["this machine about another name", "127.0.0.1", "mta-sts.example.org", {}, 404],
  ["this machine about no name", "127.0.0.1", null, {}, 404],
  ["anybody else", "198.51.100.1", NAME, {}, 404],
  ["a client of a proxy", "127.0.0.1", NAME, { "x-forwarded-for": "127.0.0.1" }, 404],
  ["a client of a trusted proxy", "203.0.113.7", NAME, { forwarded: "for=127.0.0.1" }, 404],
] as const)("a question of %s", async (_, peer, domain, headers, status) => {
  expect(await ask(peer, domain, headers)).toBe(status);
});

test("the configuration of Caddy in the guide is that of the file, which asks here", async () => {
  const read = (path: string) => Bun.file(new URL(path, import.meta.url)).text();
  const file = await read("../../fixtures/proxy/Caddyfile.mta-sts");
  const [, block = ""] = (await read("docs/manual/mta-sts.md")).split(/```\n(?=\{)/);
  const lines = (block.split("```")[0] ?? "").split("\n").filter((line) => line.trim() !== "");
  expect(lines.length).toBeGreaterThan(10);
  for (const line of lines) expect(file.split("\n")).toContain(line);
  const asked = /ask http:\/\/127\.0\.0\.1:8080(\S+)/.exec(file)?.[1] ?? "";
  expect(createPolicyApplication(served, new ClientAddresses([])).serves(asked, "127.0.0.1:8080")).toBe(true);
});
