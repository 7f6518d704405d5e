import { Database as Sqlite } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";
import { stdoutKindOf } from "./io.ts";

const { dataDir, run } = createCommandLine();
const MAIN = new URL("../testing/killed-serve.ts", import.meta.url).pathname;

const placeOf = (name: string) => {
  const DATA_DIR = join(dataDir, "..", name);
  return { settings: { DATA_DIR, PORT: "0", DNS_SERVERS: "127.0.0.1:9" }, file: join(DATA_DIR, "first-keys.json") };
};
const countOf = (folder: string, table: string): number => {
  const sqlite = new Sqlite(join(folder, "postwarden.db"));
  const row = sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get();
  sqlite.close();
  return row?.n ?? 0;
};

test("into a journal goes the path of the keys only; the file is private, and named until it is removed", async () => {
  const { settings, file } = placeOf("journal");
  const first = await run(["serve"], { settings, stdoutKind: "log" });
  const liveKey = /pw_live_\w{49}/.exec(readFileSync(file, "utf8"))?.[0] ?? "none";
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(first.out).toBe(
    `The keys of the account "default" and the link to its dashboard are in ${file}. Store them in a safe place and remove the file.`,
  );
  expect(first.out + first.err).not.toContain(liveKey);
  expect((await run(["serve"], { settings, stdoutKind: "log" })).out).toBe(first.out);
  // A person who starts it later sees them, once.
  const seen = await run(["serve"], { settings });
  expect(seen.out).toContain(liveKey);
  expect(existsSync(file)).toBe(false);
  expect((await run(["serve"], { settings })).out).toBe("");
});

test("keys that work no longer are not shown", async () => {
  const { settings, file } = placeOf("stale");
  await run(["accounts", "create", "anna"], { settings });
  writeFileSync(file, JSON.stringify({ account: "default", live_key: `pw_live_${"x".repeat(49)}`, test_key: "" }));
  expect((await run(["serve"], { settings })).out).toBe("");
  expect(existsSync(file)).toBe(false);
});

test("an account without keys is never left: what fails at the second key undoes the account", async () => {
  const { settings, file } = placeOf("half");
  await run(["migrate"], { settings });
  const sqlite = new Sqlite(join(settings.DATA_DIR, "postwarden.db"));
  sqlite.run(
    "CREATE TRIGGER fail BEFORE INSERT ON api_keys WHEN NEW.mode = 'test' BEGIN SELECT RAISE(ABORT, 'disk full'); END",
  );
  expect((await run(["serve"], { settings })).status).toBe(1);
  expect([countOf(settings.DATA_DIR, "accounts"), countOf(settings.DATA_DIR, "ledger")]).toEqual([0, 0]);
  expect(existsSync(file)).toBe(false);
  sqlite.run("DROP TRIGGER fail");
  sqlite.close();
  expect((await run(["serve", "--json"], { settings })).json).toMatchObject({ account: "default" });
});

describe("the link for the first user", () => {
  const shownIn = async (settings: Record<string, string>) => (await run(["serve", "--json"], { settings })).json;
  const change = (folder: string, sql: string) => {
    const sqlite = new Sqlite(join(folder, "postwarden.db"));
    sqlite.run(sql);
    sqlite.close();
  };

  test("is printed with the keys, for a terminal and as JSON", async () => {
    const { settings } = placeOf("link");
    expect((await shownIn(settings)).setup_url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/setup\/\w{43}$/);
    const { out, err } = await run(["serve"], { settings: placeOf("link-terminal").settings });
    expect(out).toMatch(/choose a password\. The link works once, within 7 days:\n\n {2}http:\S+\/setup\/\w{43}\n/);
    expect(err).not.toContain("/setup/");
    expect(err).not.toContain("the dashboard has no user");
  });

  test.each([
    ["used", "UPDATE setup_links SET used_at_ms = 1"],
    ["expired", "UPDATE setup_links SET expires_at_ms = 1"],
    [
      "useless, because somebody can sign in",
      "INSERT INTO users (id, account_id, email, role, is_operator, recovery_codes, created_at_ms) SELECT 'u', id, 'a@b.example', 'owner', 1, '[]', 1 FROM accounts",
    ],
  ])("is not printed once it is %s", async (what, sql) => {
    const { settings } = placeOf(`link-${what.slice(0, 4)}`);
    await run(["serve"], { settings, stdoutKind: "log" });
    change(settings.DATA_DIR, sql);
    expect(await shownIn(settings)).toMatchObject({ setup_url: null, live_key: expect.any(String) });
  });

  test("is under the present URL, whichever it was at the first start", async () => {
    const { settings } = placeOf("link-moved");
    await run(["serve"], { settings, stdoutKind: "log" });
    const moved = await shownIn({ ...settings, BASE_URL: "https://mail.example.com" });
    expect(moved.setup_url).toMatch(/^https:\/\/mail\.example\.com\/setup\/\w{43}$/);
  });
});

test("a service with accounts and without users says how to add one, until there is one", async () => {
  const { settings } = placeOf("upgraded");
  await run(["accounts", "create", "anna"], { settings });
  expect((await run(["serve"], { settings })).err).toContain('"create_one":"postwarden users add EMAIL"');
  await run(["users", "add", "anna@example.com"], { settings });
  expect((await run(["serve"], { settings })).err).not.toContain("the dashboard has no user");
});

test.each(["before the commit", "before the print"])(
  "kill -9 %s: the next start shows keys that work",
  async (moment) => {
    const { settings } = placeOf(moment.replaceAll(" ", "-"));
    await run(["migrate"], { settings });
    const environment = Object.fromEntries(
      Object.entries(settings).map(([name, value]) => [`POSTWARDEN_${name}`, value]),
    );
    const killed = Bun.spawnSync([process.execPath, "--no-env-file", MAIN, moment], { env: environment });
    expect(killed.signalCode).toBe("SIGKILL");
    expect(killed.stdout.toString()).not.toContain("pw_live_");
    const accounts = countOf(settings.DATA_DIR, "accounts");
    expect(accounts).toBe(moment === "before the commit" ? 0 : 1);
    const shown = await run(["serve"], { settings });
    expect(shown.out).toMatch(/pw_live_\w{49}/);
    expect([countOf(settings.DATA_DIR, "accounts"), countOf(settings.DATA_DIR, "api_keys")]).toEqual([1, 2]);
  },
);

test.each([
  ["a terminal", true, 1, {}, "terminal"],
  ["a pipe or a file", undefined, 4711, {}, "pipe"],
  ["the journal", undefined, 4711, { JOURNAL_STREAM: "8:12345" }, "log"],
  ["a terminal below a service", true, 4711, { JOURNAL_STREAM: "8:12345" }, "terminal"],
  ["a container's log", false, 1, {}, "log"],
] as const)("standard output is %s", (_what, isTerminal, pid, environment, expected) => {
  expect(stdoutKindOf(isTerminal, { pid, environment })).toBe(expected);
});
