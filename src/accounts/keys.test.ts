import { expect, test } from "bun:test";
import { createApps } from "../testing/app.ts";
import { changesNothingOfOthers } from "../testing/other-account.ts";
import { OwnKeys } from "./keys.ts";
import { AccountStore } from "./store.ts";

const start = createApps();
const HOUR_MS = 60 * 60 * 1000;

/** An account with two keys of the same mode. */
const fill = () => {
  const app = start();
  const accountId = app.newAccount("acme", "scale");
  const issue = () => {
    const issued = app.service.accounts.keys.create({ account: "acme", mode: "live" });
    if (!issued.ok) throw new Error(issued.error);
    return issued.value;
  };
  const [key, second] = [issue(), issue()];
  const works = (secret: string) => app.service.accounts.authenticate(`Bearer ${secret}`) !== undefined;
  return { app, accountId, key, second, works };
};

test("rotating a key ends the old secret of this key after the grace, and no other one", async () => {
  const { app, accountId, key, second, works } = fill();
  const { value: rotated } = await changesNothingOfOthers(app.db.sqlite, { accountId }, () =>
    app.service.accounts.keys.rotate(key.id),
  );
  await app.advance(24 * HOUR_MS);
  expect([key.key, second.key, rotated.ok ? rotated.value.key : ""].map(works)).toEqual([false, true, true]);
});

test("rotating a key twice leaves its first secret the end that the first rotation set", async () => {
  const { app, key, works } = fill();
  app.service.accounts.keys.rotate(key.id);
  await app.advance(12 * HOUR_MS);
  app.service.accounts.keys.rotate(key.id);
  await app.advance(12 * HOUR_MS);
  expect(works(key.key)).toBe(false);
});

test("revoking a key revokes this one only", async () => {
  const { app, accountId, key, second, works } = fill();
  await changesNothingOfOthers(app.db.sqlite, { accountId }, () => app.service.accounts.keys.revoke(key.id));
  expect([key.key, second.key].map(works)).toEqual([false, true]);
});

test("the keys of an account are listed with those that work first, the newest of each first", async () => {
  const { app, accountId, key, second } = fill();
  const { keys } = app.service.accounts;
  const own = new OwnKeys(new AccountStore(app.db), keys);
  const given = { name: "shop", mode: "live", scopes: ["verifications:read"] } as const;
  const briefly = own.create(accountId, { ...given, expiresAtMs: app.clock.nowMs() + HOUR_MS }, "ada");
  const newest = own.create(accountId, { ...given, expiresAtMs: app.clock.nowMs() + 3 * HOUR_MS }, "ada");
  own.revoke(accountId, second.id, "ada");
  const ids = () => own.list(accountId, app.clock.nowMs()).map(({ id }) => id);
  expect(ids()).toEqual([newest.id, briefly.id, key.id, second.id]);
  await app.advance(HOUR_MS);
  expect(ids()).toEqual([newest.id, key.id, briefly.id, second.id]);
});
