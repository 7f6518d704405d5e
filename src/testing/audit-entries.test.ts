import { expect, test } from "bun:test";
import { createApps } from "./app.ts";
import { entriesAddedBy, requireEntry } from "./audit-entries.ts";
import { watchOthers } from "./other-account.ts";

const start = createApps();

/** An account whose name a fake form or command changes, which appends the entries `actions`. */
const renaming = async (...actions: readonly string[]) => {
  const app = start();
  app.newKey();
  const accountId = app.accountId();
  const { value, entries } = await entriesAddedBy(app.db.sqlite, () =>
    watchOthers(app.db.sqlite, { accountId }, () => {
      app.db.sqlite.run("UPDATE accounts SET name = 'renamed' WHERE id = ?", [accountId]);
      for (const action of actions)
        app.db.transact((tx) =>
          app.service.accounts.audit.append(tx, { action, accountId, subject: "main", by: "ada" }),
        );
    }),
  );
  return { accountId, found: { changed: value.changed, entries } };
};

const entryOf = (accountId: string, action: string) => ({ user: "user ada", action, accountId, subject: "main" });

test("a change with its entry is accepted", async () => {
  const { accountId, found } = await renaming("accounts.rename");
  expect(() => requireEntry(found, entryOf(accountId, "accounts.rename"))).not.toThrow();
});

test("a change that records nothing fails, with its table", async () => {
  const { accountId, found } = await renaming();
  expect(() => requireEntry(found, entryOf(accountId, "accounts.rename"))).toThrow("The change of accounts is in");
  expect(() => requireEntry(found, null)).not.toThrow();
});

test("so does one that records another action, user, account or subject, or the same twice", async () => {
  const { accountId, found } = await renaming("accounts.rename");
  const expected = entryOf(accountId, "accounts.rename");
  for (const wrong of [{ action: "x" }, { user: "user x" }, { accountId: null }, { subject: null }])
    expect(() => requireEntry(found, { ...expected, ...wrong })).toThrow("The change of accounts is in");
  expect(() => requireEntry(found, null)).toThrow("instead of []");
  const twice = await renaming("accounts.rename", "accounts.rename");
  expect(() => requireEntry(twice.found, entryOf(twice.accountId, "accounts.rename"))).toThrow("instead of");
});
