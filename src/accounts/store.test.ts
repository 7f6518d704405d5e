import { expect, test } from "bun:test";
import { createApps } from "../testing/app.ts";

const start = createApps();

test("an account is found by its id, and one that is being deleted neither by its name nor in the list", () => {
  const app = start();
  const [acme, bolt] = [app.newAccount("acme", "free"), app.newAccount("bolt", "free")];
  const { store } = app.service.accounts;
  expect([acme, bolt].map((id) => store.findAccount(id)?.name)).toEqual(["acme", "bolt"]);
  expect(store.findAccount("nobody")).toBeUndefined();
  app.db.sqlite.run("UPDATE accounts SET deleted_at_ms = ? WHERE id = ?", [app.clock.nowMs(), acme]);
  expect(store.findAccountByName("acme")).toBeUndefined();
  expect(store.findAccountByName("bolt")?.id).toBe(bolt);
  const listed = store.listAccounts().map(({ name }) => name);
  expect(listed).toContain("bolt");
  expect(listed).not.toContain("acme");
});

test("a new secret ends those of its key that would work longer, and none that ends earlier, and none of another key", () => {
  const app = start();
  app.newAccount("acme", "free");
  const { store, keys } = app.service.accounts;
  const [key, other] = ["live", "live"].map(() => {
    const issued = keys.create({ account: "acme", mode: "live" });
    if (!issued.ok) throw new Error(issued.error);
    return issued.value.id;
  });
  /** Replaces the secret; when the secrets of the key end then, the earliest first. */
  const ends = (oldUntilMs: number) => {
    const secret = { hash: `hash ${oldUntilMs}`, keyId: key ?? "", ending: "abcd", validUntilMs: null, createdAtMs: 1 };
    app.db.transact((tx) => store.replaceSecret(tx, secret, oldUntilMs));
    const all = store.listSecrets(key ?? "").map(({ validUntilMs }) => validUntilMs);
    return all.toSorted((a, b) => (a ?? Infinity) - (b ?? Infinity));
  };
  expect(ends(2_000)).toEqual([2_000, null]);
  expect(ends(3_000)).toEqual([2_000, 3_000, null]);
  expect(ends(2_500)).toEqual([2_000, 2_500, 2_500, null]);
  expect(store.listSecrets(other ?? "").map(({ validUntilMs }) => validUntilMs)).toEqual([null]);
});
