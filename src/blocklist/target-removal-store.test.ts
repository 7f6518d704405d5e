import { expect, test } from "bun:test";
import { createBlocklistFixtures } from "../testing/blocklist-fixture.ts";
import { TargetRemovalStore } from "./target-removal-store.ts";

const newFixture = createBlocklistFixtures();

const FILL = `INSERT INTO blocklist_checks (id, target_id, trigger, started_at_ms, finished_at_ms, status, is_change, body)
  SELECT ?1 || value, ?1, 'manual', 0, 0, 'clean', 0, '{}' FROM json_each('[1,2,3]')`;

test("a target goes after its history, some rows at a time, and no other target loses anything", () => {
  const fixture = newFixture();
  const { db } = fixture;
  const [id, other] = [fixture.add("192.0.2.1"), fixture.add("192.0.2.2")];
  for (const target of [id, other]) db.sqlite.query(FILL).run(target);
  const removal = new TargetRemovalStore(db);
  const removeSome = () => db.transact((tx) => removal.removeSome(tx, id, 2));
  const left = () => db.sqlite.query("SELECT count(*) AS checks FROM blocklist_checks WHERE target_id = ?").get(id);
  expect([removeSome(), left(), fixture.store.findTarget(id)?.id]).toEqual([2, { checks: 1 }, id]);
  expect([removeSome(), left(), fixture.store.findTarget(id)]).toEqual([2, { checks: 0 }, undefined]);
  expect(removeSome()).toBe(0);
  expect(fixture.store.findTarget(other)).toBeDefined();
  expect(fixture.store.listChecks(other, { before: null, limit: 9 })).toHaveLength(3);
});
