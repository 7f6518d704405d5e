import { expect, test } from "bun:test";
import type { SpikeCause } from "../../insight/advice/failure-causes.ts";
import { isKnownIncident } from "./failure-spikes.ts";

const DAY = 20_000;
const CAUSE: SpikeCause = { code: "dkim_failing", domain: "example.com", selector: "mail", result: "fail" };
const INCIDENT = { startedDay: DAY, endedDay: null, share: 1, usualShare: 0, causes: [CAUSE] };

test.each([
  ["on the same day", {}, [CAUSE], DAY, true],
  ["a day before", {}, [CAUSE], DAY - 1, true],
  ["two days before", {}, [CAUSE], DAY - 2, false],
  ["while the other one is open", {}, [CAUSE], DAY + 9, true],
  ["on the day on which the other one ended", { endedDay: DAY + 4 }, [CAUSE], DAY + 4, true],
  ["after the other one ended", { endedDay: DAY + 4 }, [CAUSE], DAY + 5, false],
  ["with another selector", {}, [{ ...CAUSE, selector: "s2" }], DAY, false],
  ["of another domain", {}, [{ ...CAUSE, domain: "example.net" }], DAY, false],
  ["for another reason", {}, [{ ...CAUSE, code: "dkim_missing" as const }], DAY, false],
  ["without a known cause", {}, [], DAY, false],
])("an incident that starts %s: known is %p %p %p %p", (_, change, causes, startedDay, isKnown) => {
  const incidents = new Map([["own", { ...INCIDENT, ...change }]]);
  expect(isKnownIncident({ state: "started", startedDay }, causes, incidents)).toBe(isKnown);
  expect(isKnownIncident({ state: "grew", startedDay }, causes, incidents)).toBe(false);
});
