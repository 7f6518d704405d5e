import { describe, expect, test } from "bun:test";
import { createDmarcAlertWorlds } from "../../testing/dmarc-alert-world.ts";
import { createZoneResolver, type Zone } from "../../testing/dns-zone.ts";
import { createAdvisor } from "./advice-for.ts";
import { adviceSchema } from "./advice-schemas.ts";
import type { DomainRow } from "../domains/domain-store.ts";

const newWorld = createDmarcAlertWorlds();
const RECORD = "v=DMARC1; p=none; rua=mailto:k@r.example";
const POLICY = {
  p: "none",
  sp: "none",
  np: "none",
  adkim: "r",
  aspf: "r",
  t: "n",
  pct: 100,
  own: true,
  inherited_from: null,
};
const STATE = JSON.stringify({ believed: { records: [RECORD], holds_ours: true, policy: POLICY }, doubt: null });

const start = (zone: Zone = {}, more: Partial<DomainRow> = {}) => {
  const world = newWorld();
  const { reading, reader, clock } = world;
  const resolver = createZoneResolver(zone);
  const domain = world.add("example.com", { state: STATE, ...more });
  const advise = createAdvisor({ reading, reader, resolver, clock });
  return { ...world, resolver, domain, advise: () => advise(domain) };
};

describe("advice about a domain", () => {
  test("counts what its reports say, and fits the documentation", async () => {
    const { advise, domain, report, today } = start();
    for (let day = today - 12; day <= today; day++)
      report(domain.number, day, "dkim:example.com", { messages: 20, aligned: 20 });
    const advice = await advise();
    expect(adviceSchema.safeParse(advice).error).toBeUndefined();
    expect(advice.stage).toBe("monitoring");
    const observed = Object.fromEntries(advice.requirements.map(({ code, observed: value }) => [code, value]));
    expect(observed).toMatchObject({ reported_days: 13, reporters: 1, messages: 260, aligned_share: 1 });
  });

  test("without any report or check is to publish the record", async () => {
    const { advise } = start({}, { state: null, status: "pending" });
    expect(await advise()).toMatchObject({ stage: "none", ready: false, next: { action: "publish_record" } });
  });

  test("asks whether the names below it that send exist, and takes silence for no yes", async () => {
    for (const [zone, action] of [
      [{ "a.example.com": { TXT: ["v=spf1 -all"] } }, "protect_missing_names"],
      [{}, "wait"],
      [{ "a.example.com": "servfail" }, "wait"],
    ] as const) {
      const { advise, domain, report, name, today, resolver } = start(zone);
      report(domain.number, today, "dkim:example.com", { messages: 5, aligned: 5 });
      name(domain.number, today, "a.example.com", { messages: 5, aligned: 5 });
      name(domain.number, today, "forged.example.com", { messages: 5 });
      expect((await advise()).next?.action).toBe(action);
      expect(resolver.asked).toEqual(["A a.example.com"]);
    }
  });

  test("asks no DNS for test keys", async () => {
    const { advise, domain, name, today, resolver } = start({}, { mode: "test" });
    name(domain.number, today, "a.example.com", { messages: 5, aligned: 5 });
    await advise();
    expect(resolver.asked).toEqual([]);
  });
});
