import { expect, test } from "bun:test";
import { mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { takeServerLock } from "../foundation/db/database-files.ts";
import { TestApp } from "../testing/app.ts";
import { postList, untilJobEnded } from "../testing/bulk-requests.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { FULL_SETTINGS, fillAccount } from "../testing/full-account.ts";

const [here, there] = [createCommandLine(), createCommandLine()];
const openApp = ({ dataDir }: typeof here) =>
  new TestApp({ path: join(dataDir, "postwarden.db"), settings: FULL_SETTINGS });
const file = join(here.dataDir, "..", "main.account");

/** What a client of the account sees. */
const seenBy = async (
  app: TestApp,
  key: { readonly key: string },
  { list, domain }: { list: string; domain: string },
) => {
  const headers = { authorization: `Bearer ${key.key}` };
  const get = async (path: string) => (await app.handle(new Request(`http://localhost${path}`, { headers }))).text();
  const paths = ["/v1/account", `/v1/bulk-verifications/${list}`, `/v1/bulk-verifications/${list}/results.csv`];
  const ofDomain = ["", "/summary", "/sources", "/advice", "/records"].map(
    (name) => `/v1/dmarc/domains/${domain}${name}`,
  );
  const others = [
    "/v1/dmarc/domains",
    "/v1/blacklist/targets",
    "/v1/events",
    "/v1/webhooks/deliveries",
    "/v1/email-verifications",
  ];
  return Object.fromEntries(
    await Promise.all([...paths, ...ofDomain, ...others].map(async (path) => [path, await get(path)] as const)),
  );
};

test("an account moves with everything, and works on the other instance", async () => {
  for (const { dataDir } of [here, there]) mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const former = openApp(here);
  const { key, endedList: list, domain, runningList, queuedList } = await fillAccount(former);
  former.service.accounts.accounts.rename("main", "acme");
  const ids = { list, domain };
  former.close();
  // The numbers of its rows are those of others there.
  const other = openApp(there);
  await fillAccount(other);
  other.close();

  const move = () => here.run(["accounts", "move", "acme", file]);
  expect(await move()).toMatchObject({ status: 1, problem: expect.stringContaining('accounts disable "acme"') });
  await here.run(["accounts", "disable", "acme"]);
  expect(await move()).toMatchObject({ status: 1, problem: expect.stringContaining("2 unfinished lists") });
  const ofAccount = ["--account", "acme", "--mode", "test"];
  for (const id of [runningList, queuedList]) await here.run(["lists", "cancel", id, ...ofAccount]);
  await here.run(["webhooks", "cancel", ...ofAccount]);
  expect(await move()).toMatchObject({
    status: 1,
    problem: expect.stringMatching(/open work: \d events without deliveries\. Let the running service end it/),
  });
  const ending = openApp(here);
  ending.db.sqlite.run("UPDATE outbox SET delivered_at_ms = 1 WHERE delivered_at_ms IS NULL");
  ending.service.accounts.accounts.setEnabled("acme", true);
  const before = await seenBy(ending, key, ids);
  expect(Object.entries(before).filter(([, text]) => text.includes('"error":'))).toEqual([]);
  ending.service.accounts.accounts.setEnabled("acme", false);
  ending.close();
  expect(before[`/v1/dmarc/domains/${domain}/records`]).toContain("192.0.2.");

  const moved = await here.run(["accounts", "move", "acme", file, "--json"], {
    settings: { POLICY_LISTEN: "127.0.0.1:1", POLICY_ACCOUNT: "acme" },
  });
  expect([moved.status, moved.err]).toEqual([
    0,
    "postwarden: warning: POSTWARDEN_POLICY_ACCOUNT names the account. Name another one before you delete the account here.",
  ]);
  expect(moved.json).toMatchObject({
    account: "acme",
    file,
    bytes: statSync(file).size,
    tables: { accounts: 1, dmarc_reports: 1 },
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await move()).toMatchObject({ status: 1, problem: expect.stringContaining("exists already") });

  const take = () => there.run(["accounts", "take", file]);
  const lock = takeServerLock(join(there.dataDir, "server.lock"));
  expect(await take()).toMatchObject({ status: 1, problem: expect.stringContaining("Another server is using") });
  lock?.release();
  const taken = await take();
  expect([taken.status, taken.err]).toEqual([0, ""]);
  expect(taken.out).toMatch(/^MOVED +ROWS\n/);
  expect(taken.out).toContain('postwarden accounts enable "acme"');
  expect(await take()).toMatchObject({ status: 1, problem: expect.stringContaining("The account is here already") });
  expect((await there.run(["credits", "show", "acme"])).status).toBe(0);
  const [entry] = (await there.run(["audit", "--account", "acme", "--json"])).json.entries as readonly Record<
    string,
    unknown
  >[];
  expect(entry).toMatchObject({ action: "accounts.take", subject: "acme" });

  const app = openApp(there);
  expect((await app.request("GET", "/v1/account", { key })).status).toBe(403);
  app.service.accounts.accounts.setEnabled("acme", true);
  expect(await seenBy(app, key, ids)).toEqual(before);
  const list2 = await postList(app, { key, body: { emails: ["mailbox_exists@b.example"] } });
  await untilJobEnded(app, key, list2.id);
  expect((await app.request("GET", `/v1/bulk-verifications/${list2.id}`, { key })).body.status).toBe("completed");
  app.close();

  expect(await here.run(["accounts", "delete", "acme", "--yes"])).toMatchObject({ status: 0 });
}, 60_000);

test("what is no file, no account or no name is refused", async () => {
  expect(await there.run(["accounts", "take", `${file}.none`])).toMatchObject({
    status: 1,
    problem: expect.stringContaining("no such file"),
  });
  expect(await there.run(["accounts", "take", join(there.dataDir, "postwarden.db")])).toMatchObject({
    status: 1,
    problem: expect.stringContaining("was not written by `postwarden accounts move`"),
  });
  expect(await there.run(["accounts", "move", "nobody", `${file}.2`])).toMatchObject({
    status: 1,
    problem: expect.stringContaining('no account "nobody"'),
  });
  await there.run(["accounts", "create", "new"]);
  await there.run(["accounts", "disable", "new"]);
  expect(await there.run(["accounts", "move", "new", "/nowhere/x"])).toMatchObject({
    status: 1,
    problem: expect.stringContaining("/nowhere/x: no such file"),
  });
  const alone = join(there.dataDir, "..", "alone");
  await here.run(["accounts", "create", "alone"]);
  await here.run(["accounts", "disable", "alone"]);
  await here.run(["accounts", "move", "alone", alone]);
  rmSync(`${alone}.sha256`);
  const taken = await there.run(["accounts", "take", alone, "--json"]);
  expect([taken.status, taken.json.checksum, taken.err]).toEqual([
    0,
    "missing",
    expect.stringContaining(`There is no ${alone}.sha256`),
  ]);
});
