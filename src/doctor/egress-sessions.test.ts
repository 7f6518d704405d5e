import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../foundation/base/clock.ts";
import { egressesOf } from "../verify/smtp/open.ts";
import { readConfig } from "../service/config.ts";
import { createDirectConnector } from "../foundation/net/connector.ts";
import { createZoneResolver } from "../testing/dns-zone.ts";
import { startSmtpStub } from "../testing/smtp-stub.ts";
import { doctorFindings } from "./doctor-check.ts";
import { checkEgresses } from "./egress-check.ts";

let greeting = "stub.example";
const stub = startSmtpStub({ command: (line) => (line.startsWith("EHLO") ? `250 ${greeting}` : undefined) });
afterAll(() => stub.stop());
const direct = createDirectConnector({ clock: systemClock, mayConnect: () => true });

/** Runs the checks of egresses that all reach the stub. Returns the findings, and the addresses looked up in blocklists. */
const look = async (sourceAddresses: string, says: string) => {
  greeting = says;
  const config = readConfig({ POSTWARDEN_SOURCE_ADDRESSES: sourceAddresses, POSTWARDEN_HELO_NAME: "out.example" });
  if (!config.ok) throw new Error(config.error.join(" "));
  const dialled: string[] = [];
  const resolver = createZoneResolver({
    "shop.example": { MX: [[1, "mx.shop.example"]] },
    "mx.shop.example": { A: ["198.51.100.25"], AAAA: ["2001:db8::25"] },
  });
  const platform = {
    ...{ clock: systemClock, random: { integer: () => 0 }, resolver },
    connector: (target: Parameters<typeof direct>[0]) => {
      dialled.push(`${target.localAddress} to ${target.address}`);
      return direct({ address: stub.hostname, port: stub.port, timeoutMs: 5_000 });
    },
  };
  const listed: string[] = [];
  const found = await checkEgresses({
    ...{ config: config.value, resolver, domain: "shop.example", isLocal: async () => true },
    egresses: (note) => egressesOf(config.value, platform, note),
    checkListings: async (address) => {
      listed.push(address);
      return doctorFindings("egress_listed").ok("On none.");
    },
  });
  const ports = found.filter(({ check }) => check === "port").map(({ message }) => message);
  return { checks: found.map(({ check, state }) => `${check} ${state}`), ports, listed, dialled };
};

test("a public source address needs no mail host that says which address it sees", async () => {
  const { checks, listed } = await look("203.0.114.9", "stub.example");
  expect(checks).toEqual(["port ok", "egress_name warn", "egress_listed ok"]);
  expect(listed).toEqual(["203.0.114.9"]);
});

test("the address that the mail host sees counts, and is named where it is another one", async () => {
  const { ports, listed } = await look("10.0.0.5", "stub.example at your service, [203.0.114.9]");
  expect(ports).toEqual([
    "mx.shop.example [198.51.100.25]:25 is reachable from 10.0.0.5 and sees the address 203.0.114.9.",
  ]);
  expect(listed).toEqual(["203.0.114.9"]);
  const same = await look("203.0.114.9", "stub.example at your service, [203.0.114.9]");
  expect(same.ports).toEqual(["mx.shop.example [198.51.100.25]:25 is reachable from 203.0.114.9."]);
});

test("without either, the public address is not known", async () => {
  const { checks, listed } = await look("10.0.0.5", "stub.example");
  expect([checks, listed]).toEqual([["port ok", "egress_address warn"], []]);
});

test("two egresses behind one address are looked up once", async () => {
  const { listed } = await look("10.0.0.5,10.0.0.6", "stub.example at your service, [203.0.114.9]");
  expect(listed).toEqual(["203.0.114.9"]);
});

test("an IPv6 source address connects to the mail host's IPv6 address", async () => {
  const { dialled } = await look("10.0.0.5,2001:db8::5", "stub.example");
  expect(dialled.toSorted()).toEqual(["10.0.0.5 to 198.51.100.25", "2001:db8::5 to 2001:db8::25"]);
});
