import { describe, expect, test } from "bun:test";
import { createDomainHarness, LIVE, REPORT_HOST, TEST } from "../../../testing/monitored-domains.ts";

const newHarness = createDomainHarness();

describe("what is published", () => {
  const start = async (owner = LIVE) => {
    const harness = newHarness();
    const { domain } = await harness.enrol(owner.mode === "test" ? "a.example" : "example.com", owner);
    const stateAfter = async () => {
      await harness.domains.verify(owner, domain.id);
      return harness.domains.publication(harness.find(domain.id));
    };
    return { ...harness, domain, stateAfter, rua: `rua=mailto:${domain.token}@${REPORT_HOST}` };
  };

  test("is known from the check at the enrolment, without another query", async () => {
    const { domains, domain, find, resolver, clock } = await start();
    const queries = resolver.queries.length;
    const publication = domains.publication(find(domain.id));
    expect(publication).toMatchObject({
      ...{ state: "missing", host: "_dmarc.example.com", reportingAddress: `${domain.token}@${REPORT_HOST}` },
      ...{ checkedAtMs: clock.nowMs(), cachedUntilMs: clock.nowMs() + 300_000 },
      advised: { action: "create", value: `v=DMARC1; p=none; rua=mailto:${domain.token}@${REPORT_HOST}` },
    });
    expect(resolver.queries).toHaveLength(queries);
  });

  test("is in order, lacks the address, is in conflict, not authorized or unknown", async () => {
    const { publish, zone, stateAfter, rua } = await start();
    publish("example.com", `v=DMARC1; p=none; ${rua}`);
    expect(await stateAfter()).toMatchObject({ state: "in_order", advised: { action: "none" } });
    publish("example.com", "v=DMARC1; p=reject");
    expect(await stateAfter()).toMatchObject({
      ...{ state: "no_address" },
      advised: { action: "update", current: "v=DMARC1; p=reject", value: `v=DMARC1; p=reject; ${rua}` },
    });
    publish("example.com", "v=DMARC1; p=reject", "v=DMARC1; p=none");
    expect(await stateAfter()).toMatchObject({ state: "conflict", advised: { reason: "several_records" } });
    publish("example.com", `v=DMARC1; p=none; ${rua}`);
    zone[`example.com._report._dmarc.${REPORT_HOST}`] = "nxdomain";
    expect((await stateAfter()).state).toBe("not_authorised");
    zone[`example.com._report._dmarc.${REPORT_HOST}`] = "servfail";
    expect((await stateAfter()).state).toBe("unknown");
    zone["_dmarc.example.com"] = "timeout";
    expect(await stateAfter()).toMatchObject({ state: "unknown", cachedUntilMs: null });
  });

  test("is unknown before the first check, and without the text that an older version did not store", async () => {
    const { domains, insert } = await start();
    const never = insert({ id: "1", token: "t", domain: "b.com" });
    expect(domains.publication(never)).toMatchObject({ state: "unknown", checkedAtMs: null, advised: null });
    const old = { at: "2026-01-01T00:00:00.000Z", ok: false, checks: [] };
    expect(domains.publication({ ...never, lastCheck: JSON.stringify(old) })).toMatchObject({
      ...{ state: "unknown", advised: null, cachedUntilMs: null },
    });
  });

  test("is not stored when it is huge, but its state is", async () => {
    const { publish, stateAfter } = await start();
    publish("example.com", `v=DMARC1; p=none; x=${"a".repeat(20_000)}`);
    expect(await stateAfter()).toMatchObject({ state: "no_address", advised: null });
  });

  test("of a test domain is published by the check", async () => {
    const { stateAfter } = await start(TEST);
    expect((await stateAfter()).state).toBe("in_order");
  });
});
