import { describe, expect, test } from "bun:test";
import { createDomainHarness, REPORT_HOST } from "../../../testing/monitored-domains.ts";
import { policySchema } from "./domain-state.ts";
import { ALERT_RULES } from "../../alerts/rules/alert-rules.ts";
import { domainView } from "./domains.ts";

const newHarness = createDomainHarness();
const record = (token: string, tags: string) => `v=DMARC1; ${tags}; rua=mailto:${token}@${REPORT_HOST}`;
const FIELDS = ["p", "sp", "np", "adkim", "aspf", "own", "inherited_from", "t", "pct"];

describe("what softens a policy is shown", () => {
  test.each([
    ["p=reject; t=y", { p: "reject", t: "y", pct: 100 }],
    ["p=reject; pct=20", { p: "reject", t: "n", pct: 20 }],
  ])("%s, of the domain, in its history and in the alert", async (tags, shown) => {
    const harness = newHarness();
    const { id, token } = await harness.activate();
    harness.publish("example.com", record(token, tags));
    await harness.checkScheduled(id);
    await harness.clock.advance(35 * 60_000);
    const row = await harness.checkScheduled(id);
    const deps = { platforms: harness.platforms, urls: { isDisabled: () => false }, rules: ALERT_RULES };
    expect(domainView(row, deps, harness.clock.nowMs()).policy).toMatchObject(shown);
    expect(harness.history(id).map(({ policy }) => policy)).toContainEqual(expect.objectContaining(shown));
    const alert = harness.alerts.find(({ rule }) => rule === "policy_weakened");
    expect(alert?.data).toMatchObject({ previous_policy: { p: "reject", t: "n", pct: 100 }, policy: shown });
  });

  test("a policy that was written down without it has neither", () => {
    const old = { p: "reject", sp: "reject", np: "reject", adkim: "r", aspf: "r", own: true, inherited_from: null };
    const view = policySchema.parse(old);
    expect(view).toMatchObject({ ...old, t: "n", pct: 100 } as never);
    expect(Object.keys(view ?? {})).toEqual(FIELDS);
  });
});
