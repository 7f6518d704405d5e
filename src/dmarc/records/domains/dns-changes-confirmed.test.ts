import { describe, expect, test } from "bun:test";
import { createDomainHarness, LIVE, REPORT_HOST } from "../../../testing/monitored-domains.ts";

const newHarness = createDomainHarness();
const MINUTE_MS = 60_000;
const HOST = `example.com._report._dmarc.${REPORT_HOST}`;
const ALLOWED = { TXT: ["v=DMARC1;"] };
const SILENT = "servfail";

type Harness = ReturnType<typeof newHarness>;

const rules = ({ alerts }: Harness) => alerts.map(({ rule }) => rule);

/** An active domain, and scheduled checks of it 35 minutes apart: each finds a record with our address, or the texts given. */
const startActive = async (tags = "p=reject") => {
  const harness = newHarness();
  const { id, token } = await harness.activate("example.com", tags);
  const ours = (text: string) => `v=DMARC1; ${text}; rua=mailto:${token}@${REPORT_HOST}`;
  return {
    harness,
    id,
    ours,
    async find(texts: readonly string[] | "servfail", host: typeof ALLOWED | "servfail" | null = ALLOWED) {
      if (texts === "servfail") harness.zone["_dmarc.example.com"] = texts;
      else harness.publish("example.com", ...texts);
      if (host === null) delete harness.zone[HOST];
      else harness.zone[HOST] = host;
      const row = await harness.checkScheduled(id);
      await harness.clock.advance(35 * MINUTE_MS);
      return row;
    },
  };
};

describe("a doubt", () => {
  test("about a record ends with a good answer about it, also while the authorisation is silent", async () => {
    const { harness, find, ours } = await startActive();
    await find([ours("p=none")]);
    await find([ours("p=reject")], SILENT);
    await find([ours("p=none")]);
    expect(harness.alerts).toEqual([]);
    await find([ours("p=none")]);
    expect(rules(harness)).toEqual(["record_changed", "policy_weakened"]);
  });

  test("about the status ends with good answers of the checks that failed, also while another is silent", async () => {
    const { harness, find, ours } = await startActive();
    await find([]);
    expect(await find([ours("p=reject")], SILENT)).toMatchObject({ status: "active", badSinceMs: null });
    expect((await find([])).status).toBe("active");
    expect(harness.alerts).toEqual([]);
  });

  test("about the authorisation outlives the silence of the report host, and ends with its answer while the record is silent", async () => {
    const { harness, find, ours } = await startActive();
    const good = [ours("p=reject")];
    await find(good, null);
    await find(good, SILENT);
    expect(await find("servfail", ALLOWED)).toMatchObject({ status: "active", badSinceMs: null });
    await find(good, null);
    expect(harness.alerts).toEqual([]);
    await find(good, SILENT);
    expect((await find(good, null)).status).toBe("action_required");
    expect(harness.history(harness.store.list(LIVE, {}, { before: null, limit: 1 })[0]?.id ?? "")[0]).toMatchObject({
      changes: ["authorisation_lost", "status"],
    });
  });

  test("is not settled by a user's check that the DNS does not answer", async () => {
    const { harness, id, find, ours } = await startActive();
    await find([ours("p=none")]);
    harness.zone["_dmarc.example.com"] = SILENT;
    await harness.domains.verify(LIVE, id);
    await find([ours("p=none")]);
    expect(rules(harness)).toEqual(["record_changed", "policy_weakened"]);
  });
});

describe("a record that is never again what was believed", () => {
  test("is reported when it flaps between two weakenings", async () => {
    const { harness, find, ours } = await startActive();
    for (let n = 0; n < 6; n++) await find([ours(n % 2 === 0 ? "p=none" : "p=quarantine")]);
    expect(rules(harness).slice(0, 2)).toEqual(["record_changed", "policy_weakened"]);
    expect(harness.alerts[1]?.summary).toBe("the policy was weakened from p=reject to p=quarantine");
  });

  test("is reported when each response is bad in another way, by the third at the latest", async () => {
    const { harness, find, ours } = await startActive();
    await find([ours("p=none")]);
    await find(["v=DMARC1; p=reject; adkim=s"]);
    expect(harness.alerts).toEqual([]);
    await find([ours("p=none")]);
    expect(rules(harness)).toEqual(["record_changed", "policy_weakened"]);
  });

  test("is reported at the second response if that has another text, but as a weakening only if that was observed twice", async () => {
    const { harness, id, find, ours } = await startActive();
    await find([ours("p=reject; adkim=s")]);
    await find([ours("p=none")]);
    expect(harness.alerts).toEqual([]);
    expect(harness.domains.view(harness.find(id)).policy).toMatchObject({ p: "reject", adkim: "r" });
    await find([ours("p=reject; aspf=s")]);
    expect(rules(harness)).toEqual(["record_changed"]);
    expect(harness.domains.view(harness.find(id)).policy).toMatchObject({ p: "reject", aspf: "s" });
  });

  test("moves the status when two checks in a row fail, each for another reason", async () => {
    const { harness, find, ours } = await startActive();
    await find([ours("p=reject")], null);
    expect((await find([], ALLOWED)).status).toBe("action_required");
    // A change that was seen once is not alerted yet.
    expect(rules(harness)).toEqual(["status_changed"]);
    await find([], ALLOWED);
    expect(rules(harness)).toEqual(["status_changed", "record_changed", "policy_weakened"]);
  });
});

test("one scheduled answer makes a domain active again, but is no proof of a weaker policy", async () => {
  const { harness, id, find, ours } = await startActive();
  harness.publish("example.com", "v=DMARC1; p=reject");
  await harness.domains.verify(LIVE, id);
  harness.alerts.length = 0;
  expect((await find([ours("p=none")])).status).toBe("active");
  expect(rules(harness)).toEqual(["status_changed"]);
  await find([ours("p=none")]);
  expect(rules(harness)).toEqual(["status_changed", "record_changed", "policy_weakened"]);
});

test("after the clock was set back a doubt from the future is confirmed as any other", async () => {
  const { harness, id, find, ours } = await startActive();
  await harness.clock.advance(48 * 60 * MINUTE_MS);
  await find([]);
  const { number, state, badSinceMs } = harness.find(id);
  await find([ours("p=reject")]);
  // As it was written by a clock two days ahead.
  const ahead = (ms: number) => ms + 48 * 60 * MINUTE_MS;
  const later = (state ?? "").replaceAll(String(badSinceMs), String(ahead(badSinceMs ?? 0)));
  harness.db.transact((tx) => harness.store.update(tx, number, { state: later, badSinceMs: ahead(badSinceMs ?? 0) }));
  const nowMs = harness.clock.nowMs();
  expect((await find([])).nextCheckAtMs).toBe(nowMs + 35 * MINUTE_MS);
  expect((await find([])).status).toBe("action_required");
  expect(rules(harness)).toEqual(["status_changed", "record_changed", "policy_weakened"]);
});

test("a doubt that nobody answers does not make the checks come every minute", async () => {
  const { harness, id, find } = await startActive();
  harness.zone["_dmarc.com"] = { TXT: ["v=DMARC1; p=none; psd=y"] };
  await find([]);
  harness.zone["_dmarc.com"] = SILENT;
  await find([]);
  await find([]);
  expect(harness.find(id).nextCheckAtMs).toBeGreaterThanOrEqual(harness.clock.nowMs() - 5 * MINUTE_MS);
});

describe("below an organisational domain", () => {
  /** A name that inherits, where verify was pressed before anything was published. */
  const startTooEarly = async (parent: string) => {
    const harness = newHarness();
    harness.publish("example.com", parent);
    harness.zone["news.example.com"] = { A: ["192.0.2.1"] };
    const { domain, dnsRecords } = await harness.enrol("news.example.com");
    harness.zone[`news.example.com._report._dmarc.${REPORT_HOST}`] = ALLOWED;
    await harness.domains.verify(LIVE, domain.id);
    harness.alerts.length = 0;
    return { harness, domain, wanted: dnsRecords[0]?.value ?? "" };
  };

  test.each([
    "p=quarantine; np=reject",
    "p=reject; sp=quarantine; np=reject; t=y",
    "p=none; sp=reject; np=none; pct=20",
  ])("the record that we asked for is no weakening of %s", async (tags) => {
    const { harness, domain, wanted } = await startTooEarly(`v=DMARC1; ${tags}`);
    harness.publish("news.example.com", wanted);
    await harness.domains.verify(LIVE, domain.id);
    expect(rules(harness)).toEqual(["status_changed", "record_changed"]);
  });

  test("a lower p is a weakening, and sp and np of the record are not spoken of", async () => {
    const { harness, domain, wanted } = await startTooEarly("v=DMARC1; p=quarantine; np=reject");
    harness.publish("news.example.com", wanted.replace("p=quarantine", "p=none; sp=none; np=reject"));
    await harness.domains.verify(LIVE, domain.id);
    expect(harness.alerts.find(({ rule }) => rule === "policy_weakened")?.summary).toBe(
      "the policy was weakened from p=quarantine np=reject to p=none",
    );
  });

  test("a weaker np of the parent is reported while nothing else applies", async () => {
    const { harness, domain } = await startTooEarly("v=DMARC1; p=quarantine; np=reject");
    harness.publish("example.com", "v=DMARC1; p=quarantine; np=none");
    await harness.domains.verify(LIVE, domain.id);
    expect(rules(harness)).toEqual(["policy_weakened"]);
  });
});
