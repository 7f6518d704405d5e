import { expect, test } from "bun:test";
import { createDmarcAlertHarness, enrolSettled } from "../../../testing/dmarc-alert-harness.ts";
import { RollupStore } from "../../insight/sources/rollup-store.ts";
import { AlertRuleStore } from "./alert-rule-store.ts";

const newHarness = createDmarcAlertHarness();
const OWN = "192.0.2.1 example.com/mail example.com -";

test("a domain with nothing to alert is reviewed without reading its sources, another by reading them once", async () => {
  const { harness, number } = await enrolSettled(newHarness());
  let reads = 0;
  class CountingStore extends RollupStore {
    override storedSources(domain: number) {
      reads += 1;
      return super.storedSources(domain);
    }
  }
  const data = { rollups: new CountingStore(harness.db), rules: new AlertRuleStore(harness.db) };
  const review = () => harness.review(number, { all: data, trusted: data });
  review();
  reads = 0;
  harness.report(number, harness.today, OWN, { messages: 1_000, aligned: 990 });
  review();
  expect(reads).toBe(0);
  harness.report(number, harness.today, OWN, { messages: 500 });
  review();
  expect(reads).toBe(1);
  expect(harness.find(number).isUnreviewed).toBe(false);
});
