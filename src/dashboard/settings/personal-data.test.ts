import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestApp } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";
import { unzipped } from "../../testing/zip.ts";

const PATH = "/settings/personal-data";
const ADDRESS = "mailbox_exists@a.example";
const folder = mkdtempSync(join(tmpdir(), "postwarden-people-"));
afterAll(() => rmSync(folder, { recursive: true }));
let count = 0;

/** A service with a database in a file, because threads open it, and two accounts that have verified the address. */
const begin = async () => {
  const dataDir = join(folder, String(++count));
  mkdirSync(dataDir);
  const app = new TestApp({ path: join(dataDir, "postwarden.db"), settings: { DATA_DIR: dataDir } });
  const visitor = await signIn(app);
  for (const account of ["main", "other"]) await app.verify(app.newKey({ account }), ADDRESS);
  const verifications = (): number => app.countVerifications();
  return { app, visitor, verifications };
};

/** Waits for an erasure in its thread. */
const untilErased = async ({ service }: TestApp): Promise<void> => {
  while (service.personalData.isErasing) await new Promise((resolve) => setImmediate(resolve));
};

describe("personal data", () => {
  test("are found, shown and erased by an operator who types the address again", async () => {
    const { app, visitor, verifications } = await begin();
    try {
      const found = await visitor.post(`${PATH}/find`, { address: ADDRESS });
      expect(found.text).toContain("Verifications 2 rows");
      const wrong = await visitor.post(`${PATH}/erase`, { address: ADDRESS, again: "other@a.example" });
      expect([wrong.status, wrong.text.includes("Must be the same address")]).toEqual([400, true]);
      expect(wrong.text).toContain("Verifications 2 rows");
      expect(verifications()).toBe(2);
      await visitor.submit(`${PATH}/erase`, { address: ADDRESS, again: ` ${ADDRESS.toUpperCase()}` });
      await untilErased(app);
      expect(verifications()).toBe(0);
      const { text, html } = await visitor.get(PATH);
      expect(text).toContain("The last address was erased");
      expect(html).not.toContain(ADDRESS);
      expect((await visitor.post(`${PATH}/find`, { address: ADDRESS })).text).toContain("is stored nowhere");
      const entries = app.db.sqlite.query<{ action: string; text: string }, []>(
        "SELECT action, coalesce(before, '') || coalesce(after, '') AS text FROM audit_log WHERE action IN ('erase', 'erase.done') ORDER BY id",
      );
      expect(entries.all().map(({ action }) => action)).toEqual(["erase", "erase.done"]);
      expect(JSON.stringify(entries.all())).not.toContain(ADDRESS);
    } finally {
      app.close();
    }
  });

  test("of an owner who is no operator are those of the own account, and cannot be erased", async () => {
    const { app, verifications } = await begin();
    try {
      const owner = await signIn(app, { email: "owner@example.com", isOperator: false });
      const { text } = await owner.post(`${PATH}/find`, { address: ADDRESS });
      expect(text).toContain("Verifications 1 row ");
      expect(text).not.toContain("Erase this address");
      expect((await owner.post(`${PATH}/erase`, { address: ADDRESS, again: ADDRESS })).status).toBe(403);
      expect(verifications()).toBe(2);
      const member = await signIn(app, { email: "member@example.com", isOperator: false, role: "member" });
      expect((await member.get(PATH)).status).toBe(403);
      expect((await member.post(`${PATH}/export`, {})).status).toBe(403);
      const operator = await signIn(app, { email: "operator@example.com", isOperator: true, role: "member" });
      expect((await operator.get("/settings")).html).toContain(PATH);
      expect((await operator.post(`${PATH}/find`, { address: ADDRESS })).text).toContain("Verifications 2 rows");
      expect((await operator.submit(`${PATH}/erase`, { address: ADDRESS, again: ADDRESS })).text).toContain("erased");
      await untilErased(app);
      expect(verifications()).toBe(0);
    } finally {
      app.close();
    }
  });

  test.each([
    ["find", { address: "nobody" }],
    ["find", { address: "" }],
    ["export", { address: "nobody" }],
    ["erase", { address: "nobody", again: "nobody" }],
  ])("%s of what is no address is refused: %j", async (act, fields) => {
    const { app, visitor } = await begin();
    try {
      const { status, text } = await visitor.post(`${PATH}/${act}`, fields);
      expect(status).toBe(400);
      expect(text).toMatch(/is not an address|Enter an address/);
    } finally {
      app.close();
    }
  });

  test("are exported as an archive: of an address, and of the account", async () => {
    const { app, visitor } = await begin();
    try {
      const download = async (fields: Readonly<Record<string, string>>) => {
        const { headers, bytes } = await visitor.post(`${PATH}/export`, fields);
        expect(headers.get("content-type")).toBe("application/zip");
        return unzipped(bytes);
      };
      const person = await download({ address: ADDRESS });
      expect(JSON.parse(person.get("verifications.json") ?? "[]")).toHaveLength(2);
      const account = await download({});
      expect(JSON.parse(account.get("verifications.json") ?? "[]")).toHaveLength(1);
      expect(JSON.parse(account.get("accounts.json") ?? "[]")).toMatchObject([{ name: "main" }]);
      expect([...account.values()].join("")).not.toContain(app.accountId("other"));
    } finally {
      app.close();
    }
  });
});
