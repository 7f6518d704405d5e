import { expect, test } from "bun:test";
import { createTestClock } from "../../../testing/clock.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import { createDomainCheck } from "./domain-check.ts";
import { createDomainPlatforms } from "./domain-platform.ts";

const HOST = "reports.example.net";
const NAME = "news.example.com";

const look = async (parent: string, name: Zone[string] | null) => {
  const resolver = createZoneResolver({
    "_dmarc.example.com": { TXT: [`v=DMARC1; ${parent}`] },
    ...(name === null ? {} : { [NAME]: name }),
  });
  const check = createDomainCheck(
    createTestClock(),
    createDomainPlatforms({ resolver, reportHost: HOST, mailHost: null }),
  );
  const { dnsRecords, observed: seen } = await check({ domain: NAME, mode: "live", token: "token" });
  return { record: dnsRecords[0], seen, asked: resolver.countQueries(NAME, "A") };
};
const advised = (tags: string) => `v=DMARC1; ${tags}; rua=mailto:token@${HOST}`;

test.each([
  ["does not exist", null, "p=reject"],
  ["has an address", { A: ["192.0.2.1"] }, "p=none"],
  ["has no address but exists", { TXT: ["v=spf1 -all"] }, "p=none"],
  ["is an alias of what does not exist", { CNAME: "gone.example.org" }, "p=none"],
] as const)("the record for a name that %s takes over what applies to it", async (_, name, tags) => {
  const { record, seen } = await look("p=quarantine; sp=none; np=reject", name as Zone[string] | null);
  expect(record).toMatchObject({ action: "create", value: advised(tags) });
  expect(seen.policy).toMatchObject({ p: tags.slice(2), np: "reject", own: false });
});

test("nothing is advised and no policy known while the DNS does not say whether the name exists", async () => {
  const { record, seen } = await look("p=quarantine; sp=none; np=reject", "servfail");
  expect(record).toMatchObject({ action: "conflict", reason: "dns_failure", value: "" });
  expect(record?.message).toContain(NAME);
  expect(seen.policy).toBeUndefined();
});

test("nobody is asked where existence makes no difference", async () => {
  expect(await look("p=reject; sp=none", null)).toMatchObject({ asked: 0, record: { value: advised("p=none") } });
});
