import { describe, expect, test } from "bun:test";
import { changesBetween, fieldsToConfirm, isWeaker } from "./dns-changes.ts";
import type { DnsObservation, StatePolicy } from "./domain-state.ts";
import { parseRecord } from "../record/record.ts";

/** The policy that a record makes. */
const policy = (tags: string): StatePolicy => {
  const { values } = parseRecord(`v=DMARC1; ${tags}`);
  if (values === null) throw new Error(`no record: ${tags}`);
  const { p, sp, np, adkim, aspf, t, pct } = values;
  return { p, sp, np, adkim, aspf, t, pct, own: true, inherited_from: null };
};

describe("a policy", () => {
  test.each([
    ["p=reject", "p=quarantine", true],
    ["p=reject", "p=none", true],
    ["p=quarantine", "p=none", true],
    ["p=none", "p=reject", false],
    ["p=reject", "p=reject", false],
    ["p=reject", "p=reject; sp=none", true],
    ["p=reject", "p=reject; np=quarantine", true],
    ["p=none; sp=reject", "p=reject; sp=quarantine", true],
    ["p=reject", "p=reject; t=y", true],
    ["p=reject; t=y", "p=reject", false],
    ["p=quarantine", "p=reject; t=y", false],
    ["p=none", "p=none; t=y", false],
    ["p=reject", "p=reject; pct=50", true],
    ["p=quarantine", "p=reject; pct=50", false],
    ["p=none", "p=none; pct=50", false],
    ["p=reject; pct=50", "p=reject; pct=20", true],
    ["p=reject; pct=50", "p=reject", false],
    ["p=reject", "p=reject; adkim=s", false],
  ])("%s → %s is weaker: %p", (before, after, expected) => {
    expect(isWeaker(policy(before), policy(after))).toBe(expected);
  });

  test("that goes away is weaker, unless it asked for nothing", () => {
    expect(isWeaker(policy("p=quarantine"), null)).toBe(true);
    expect(isWeaker(policy("p=none"), null)).toBe(false);
    expect(isWeaker(null, policy("p=none"))).toBe(false);
    expect(isWeaker(null, null)).toBe(false);
  });
});

describe("a policy below an organisational domain", () => {
  const inherited = (tags: string): StatePolicy => ({ ...policy(tags), own: false, inherited_from: "example.com" });
  test.each([
    ["its own, for names below", policy("p=reject"), policy("p=reject; sp=none; np=none"), false],
    ["its own, for itself", policy("p=reject"), policy("p=none; sp=reject"), true],
    ["inherited, then its own", inherited("p=quarantine; np=reject"), policy("p=quarantine"), false],
    ["inherited, then its own and lower", inherited("p=quarantine; np=reject"), policy("p=none; sp=reject"), true],
    ["its own, then inherited", policy("p=none; sp=reject"), inherited("p=none"), false],
    ["inherited, for names that do not exist", inherited("p=none; np=reject"), inherited("p=none"), true],
    ["inherited, then none", inherited("p=none; np=reject"), null, true],
    ["its own, then none", policy("p=none; sp=reject"), null, false],
    ["its own, in test mode", policy("p=reject"), policy("p=reject; t=y"), true],
    ["its own, for less mail", policy("p=reject"), policy("p=reject; pct=50"), true],
  ])("%s", (_, before, after, expected) => {
    expect(isWeaker(before, after, false)).toBe(expected);
  });
});

describe("between two states of the DNS", () => {
  const ours: DnsObservation = { records: ["v=DMARC1; p=none; rua=a"], holds_ours: true, authorisation: "authorised" };
  test.each([
    ["nothing", ours, ours, []],
    ["a first record", { ...ours, records: [], holds_ours: false }, ours, ["record_added", "reporting_address_added"]],
    ["no record", ours, { ...ours, records: [], holds_ours: false }, ["record_removed", "reporting_address_removed"]],
    ["another record", ours, { ...ours, records: ["v=DMARC1; p=none; rua=a,b"] }, ["record_changed"]],
    ["a second record", ours, { ...ours, records: [...(ours.records ?? []), "x"] }, ["record_changed"]],
    ["several in another order", { records: ["a", "b"] }, { records: ["b", "a"] }, []],
    ["authorisation", ours, { ...ours, authorisation: "missing" }, ["authorisation_lost"]],
    ["turned away", ours, { ...ours, authorisation: "redirected" }, ["authorisation_lost"]],
    ["still none", { authorisation: "missing" }, { authorisation: "redirected" }, []],
    ["authorisation again", { authorisation: "missing" }, { authorisation: "not_needed" }, ["authorisation_gained"]],
    ["nothing known before", {}, ours, []],
    ["nothing known now", ours, {}, []],
  ] as const)("%s", (_, before, after, changes) => {
    expect(changesBetween(before as DnsObservation, after as DnsObservation)).toEqual([...changes]);
  });

  test("a weaker policy is a change; one that is unknown is none", () => {
    const strong = { policy: policy("p=reject") };
    expect(changesBetween(strong, { policy: policy("p=none") })).toEqual(["policy_weakened"]);
    expect(changesBetween(strong, { policy: null })).toEqual(["policy_weakened"]);
    expect(changesBetween(strong, {})).toEqual([]);
  });
});

test("what a lagging server could have answered wants a second look; what is new does not", () => {
  expect(fieldsToConfirm(["record_removed", "reporting_address_removed"])).toEqual(["records", "holds_ours"]);
  expect(fieldsToConfirm(["record_added", "policy_weakened"])).toEqual(["policy"]);
  expect(fieldsToConfirm(["authorisation_lost"])).toEqual(["authorisation"]);
  expect(fieldsToConfirm(["record_added", "reporting_address_added", "authorisation_gained", "status"])).toEqual([]);
  expect(fieldsToConfirm([])).toEqual([]);
});
