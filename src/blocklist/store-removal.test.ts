import { expect, test } from "bun:test";
import { createBlocklistFixtures } from "../testing/blocklist-fixture.ts";
import { TargetRemovalStore } from "./store.ts";

const newFixture = createBlocklistFixtures();

const FILL = `INSERT INTO blocklist_checks (id, target_id, trigger, started_at_ms, finished_at_ms, status, is_change, body)
  SELECT ?1 || value, ?1, 'manual', 0, 0, 'clean', 0, '{}' FROM json_each('[1,2,3]')`;

test("a target goes before its history, which goes some rows at a time, and no other target loses anything", () => {
  const fixture = newFixture();
  const { db } = fixture;
  const [id, other] = [fixture.add("192.0.2.1"), fixture.add("192.0.2.2")];
  for (const target of [id, other]) db.sqlite.query(FILL).run(target);
  const removal = new TargetRemovalStore(db);
  const removeSome = () => db.transact((tx) => removal.removeSome(tx, id, 2));
  const left = () => db.sqlite.query("SELECT count(*) AS checks FROM blocklist_checks WHERE target_id = ?").get(id);
  expect(db.transact((tx) => removal.removeTarget(tx, id))).toEqual([id]);
  expect([fixture.store.findTarget(id), left(), removal.unfinished()]).toEqual([undefined, { checks: 3 }, id]);
  expect([removeSome(), left(), removal.unfinished()]).toEqual([2, { checks: 1 }, id]);
  expect([removeSome(), left(), removal.unfinished()]).toEqual([2, { checks: 0 }, undefined]);
  expect(removeSome()).toBe(0);
  expect(fixture.store.findTarget(other)).toBeDefined();
  expect(fixture.store.listChecks(other, { before: null, limit: 9 })).toHaveLength(3);
});

const LIVE = { accountId: "account", mode: "live" } as const;
const NEVER = () => false;

test("a removal that fails between two steps leaves no target, checks nothing, and is finished later", async () => {
  const fixture = newFixture();
  const { db, store } = fixture;
  const targets = fixture.targets();
  const range = fixture.add("192.0.2.0/31", { members: 2 });
  const members = ["192.0.2.0", "192.0.2.1"].map((value) => fixture.add(value, { rangeId: range }));
  const other = fixture.add("192.0.2.9");
  for (const target of [range, ...members, other]) db.sqlite.query(FILL).run(target);
  db.sqlite.run("CREATE TRIGGER crash BEFORE DELETE ON blocklist_checks BEGIN SELECT RAISE(ABORT, 'crash'); END");
  const queriesBefore = fixture.resolver.queries.length;
  expect(targets.remove(LIVE, range)).rejects.toThrow("crash");
  await fixture.clock.advance(0);
  expect([range, ...members].map((id) => store.findTarget(id))).toEqual([undefined, undefined, undefined]);
  expect(() => targets.find(LIVE, range)).toThrow("There is no such target.");
  expect(store.dueTargets(fixture.clock.nowMs(), 9).map(({ id }) => id)).toEqual([other]);
  expect(fixture.resolver.queries).toHaveLength(queriesBefore);
  db.sqlite.run("DROP TRIGGER crash");
  await targets.finishRemovals(NEVER);
  const checked = db.sqlite.query<{ id: string }, []>("SELECT DISTINCT target_id id FROM blocklist_checks").all();
  expect(checked).toEqual([{ id: other }]);
  expect(db.sqlite.query("SELECT * FROM blocklist_removed_targets").all()).toEqual([]);
});
