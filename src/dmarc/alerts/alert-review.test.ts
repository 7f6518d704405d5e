import { expect, test } from "bun:test";
import { createDmarcAlertWorlds } from "../../testing/dmarc-alert-world.ts";
import { settle } from "../../testing/dmarc-alert-settled.ts";
import { RollupStore } from "../sources/rollup-store.ts";
import { RecordStore } from "../queries/record-store.ts";
import { createAlertRuleStore } from "./alert-rule-store.ts";
import { createReview } from "./alert-review.ts";

const newWorld = createDmarcAlertWorlds();
const OWN = "192.0.2.1 example.com/mail example.com -";

test("a domain without news is reviewed without reading its sources, one with news by reading them once", async () => {
  const { world, number } = await settle(newWorld());
  const { db, alerts, raise } = world;
  let opened = 0;
  class CountingStore extends RollupStore {
    override storedSources(domain: number) {
      opened += 1;
      return super.storedSources(domain);
    }
  }
  const view = { reading: new CountingStore(db), rules: createAlertRuleStore(db) };
  const review = createReview({ alerts, raise, records: new RecordStore(db), all: view, trusted: view });
  const run = (): void => db.transact((tx) => review(tx, world.find(number), world.clock.nowMs()));
  run();
  opened = 0;
  world.report(number, world.today, OWN, { messages: 1_000, aligned: 990 });
  run();
  expect(opened).toBe(0);
  world.report(number, world.today, OWN, { messages: 500 });
  run();
  expect(opened).toBe(1);
  expect(world.find(number).isUnreviewed).toBe(false);
});
