import { expect, test } from "bun:test";
import { createReceivers } from "../testing/receiver.ts";
import { createWebhookHarness, until } from "../testing/webhook-harness.ts";
import { LOOK_EVERY_MS } from "./dispatcher.ts";

const newWorld = createWebhookHarness();
const newReceiver = createReceivers();
const of = (accountId: string, n: number) => ({ accountId, mode: "live", subject: `target:${accountId}${n}` }) as const;
/** Within so many turns of the event loop a request that was sent arrives, also on a busy machine. */
const TURNS_PER_SECOND = 20_000;
const hang = () => Promise.withResolvers<Response>().promise;

test("a thousand hanging URLs of an account delay neither another account nor, for long, its own URLs that answer", async () => {
  const [world, dead, alive] = [newWorld(), newReceiver(), newReceiver()];
  dead.answer(hang);
  // That of the account is in good standing, the other's is called for the first time.
  const known = world.event(alive.url, {}, of("one", 0));
  world.dispatcher.start();
  await world.untilDelivered(known);
  const hanging = Array.from({ length: 1_000 }, (_, n) => world.event(`${dead.url}?${n}`, {}, of("one", n)));
  await world.look();
  await until(() => world.store.find(hanging.at(-1) ?? "") !== undefined);
  const good = [world.event(alive.url, {}, of("one", 2_000)), world.event(`${alive.url}?other`, {}, of("two", 0))];
  await world.look();
  for (const id of good) await world.untilDelivered(id);
  expect(world.clock.nowMs()).toBe(Date.UTC(2026, 0, 1));
  // One that nothing is known of, and that waits behind all of them in its own account, has its turn before they have timed out.
  const last = world.event(`${alive.url}?last`, {}, of("one", 3_000));
  for (let second = 0; second < 40 && world.store.find(last)?.status !== "delivered"; second++) {
    await world.clock.advance(LOOK_EVERY_MS);
    await world.look();
  }
  expect(world.store.find(last)?.status).toBe("delivered");
  expect(hanging.every((id) => world.find(id).status === "pending")).toBe(true);
});

test("a request that is given up for others is no attempt, and has its whole time later", async () => {
  const [world, dead] = [newWorld(), newReceiver()];
  dead.answer(hang);
  const ids = Array.from({ length: 200 }, (_, n) => world.event(`${dead.url}?${n}`, {}, of("one", n)));
  world.dispatcher.start();
  await dead.untilReceived(50);
  const called = () => new Set(dead.received.map(({ headers }) => headers["webhook-id"])).size;
  // All of them are called before the first could time out, though so many cannot hang at once.
  for (let second = 0; second < 14 && called() < ids.length; second++) {
    const before = called();
    await world.clock.advance(LOOK_EVERY_MS);
    await world.look();
    let turns = 0;
    await until(() => called() > before || ++turns > TURNS_PER_SECOND);
  }
  expect(called()).toBe(ids.length);
  expect(ids.every((id) => world.find(id).attempts === 0)).toBe(true);
  dead.answer(204);
  await world.clock.advance(15_000);
  await until(() => {
    world.dispatcher.wake();
    return ids.every((id) => world.find(id).attempts === 1);
  });
  expect(ids.some((id) => world.find(id).status === "delivered")).toBe(true);
});
