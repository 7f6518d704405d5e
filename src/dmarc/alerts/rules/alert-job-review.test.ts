import { expect, test } from "bun:test";
import { nextTurn } from "../../../foundation/base/clock.ts";
import { createDmarcAlertHarness, type DmarcAlertHarness, enrolSettled } from "../../../testing/dmarc-alert-harness.ts";
import { RollupStore } from "../../insight/sources/rollup-store.ts";
import { AlertRuleStore } from "./alert-rule-store.ts";

const newHarness = createDmarcAlertHarness();
const OWN = "192.0.2.1 example.com/mail example.com -";

/** Daily sums that call `onRead` before the sources of a domain are read. */
const watchedData = ({ db }: DmarcAlertHarness, onRead: () => void) => {
  class WatchedStore extends RollupStore {
    override storedSources(domain: number) {
      onRead();
      return super.storedSources(domain);
    }
  }
  return { rollups: new WatchedStore(db), rules: new AlertRuleStore(db) };
};

test("a domain with nothing to alert is reviewed without reading its sources, another by reading them once", async () => {
  const { harness, number } = await enrolSettled(newHarness());
  let reads = 0;
  const data = watchedData(harness, () => {
    reads += 1;
  });
  const review = () => harness.review(number, { all: data, trusted: data });
  await review();
  reads = 0;
  harness.report(number, harness.today, OWN, { messages: 1_000, aligned: 990 });
  await review();
  expect(reads).toBe(0);
  harness.report(number, harness.today, OWN, { messages: 500 });
  await review();
  expect(reads).toBe(1);
  expect(harness.find(number).isUnreviewed).toBe(false);
});

test("while the reverse names of all new sources are looked up, sources are not read, and the domain stays to be reviewed", async () => {
  const { harness, number } = await enrolSettled(newHarness());
  let reads = 0;
  const data = watchedData(harness, () => {
    reads += 1;
  });
  const review = () => harness.review(number, { all: data, trusted: data });
  for (const n of [7, 8, 9])
    harness.report(number, harness.today, `203.0.113.${n} -/- sender.example -`, { messages: 2, authenticated: 2 });
  await review();
  expect([reads, harness.raised(), harness.find(number).isUnreviewed]).toEqual([0, [], true]);
  harness.reverse("203.0.113.8", null);
  await review();
  expect(reads).toBe(1);
  await harness.clock.advance(60 * 60_000);
  await review();
  expect([reads, harness.find(number).isUnreviewed]).toEqual([2, false]);
});

test("a report that arrives during the review of a domain has it reviewed again", async () => {
  const { harness, number } = await enrolSettled(newHarness());
  const data = watchedData(harness, () => harness.arrive(number));
  harness.report(number, harness.today, OWN, { messages: 500 });
  await harness.review(number, { all: data, trusted: data });
  expect(harness.find(number).isUnreviewed).toBe(true);
  await harness.review(number);
  expect(harness.find(number).isUnreviewed).toBe(false);
});

test("a domain that is deleted during its review is left alone", async () => {
  const { harness, number } = await enrolSettled(newHarness());
  const data = watchedData(harness, () => harness.db.sqlite.run("DELETE FROM dmarc_domains"));
  harness.report(number, harness.today, "198.51.100.1 -/- sender.example -", { messages: 400, authenticated: 400 });
  harness.reverse("198.51.100.1", null);
  await harness.review(number, { all: data, trusted: data });
  expect([harness.raised(), harness.logged]).toEqual([[], []]);
});

test("sources are read and alerts found in several turns of the event loop", async () => {
  const { harness, number } = await enrolSettled(newHarness());
  for (let n = 0; n < 2_500; n++) {
    const ip = `10.${n >> 8}.${n & 255}.1`;
    harness.reverse(ip, null);
    harness.report(number, harness.today, `${ip} -/- sender${n % 20}.example -`, { messages: 50, authenticated: 50 });
  }
  let [turns, isOver] = [0, false];
  const reviewing = harness.review(number).finally(() => {
    isOver = true;
  });
  for (; !isOver; turns++) await nextTurn();
  await reviewing;
  expect(turns).toBeGreaterThan(20);
  expect(harness.raised().length).toBe(1);
});
