import { Database as Sqlite } from "bun:sqlite";
import { beforeAll, describe, expect, test } from "bun:test";
import type { Command } from "commander";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { TestApp } from "../testing/app.ts";
import { copyAccount } from "../testing/account-copy.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { sampleReportXml } from "../testing/dmarc-reports.ts";
import { type FullAccount, FULL_SETTINGS, fillAccount } from "../testing/full-account.ts";
import { type SharedChanges, watchOthers } from "../testing/other-account.ts";
import { createProgram } from "./cli.ts";
import { systemIo } from "./io.ts";

const { dataDir, run } = createCommandLine();
const path = join(dataDir, "postwarden.db");
const OF_ACCOUNT = ["--account", "main", "--mode", "test"];
const REPORT = join(dataDir, "..", "report.xml");

type Ids = Omit<FullAccount, "app" | "request"> & { readonly accountId: string; readonly keyId: string };

interface CommandCase {
  readonly args?: (ids: Ids) => readonly string[];
  readonly shared?: SharedChanges;
  /** A table that must change: otherwise the command did nothing. Null where the change is not a row of the account. */
  readonly changes: string | null;
}

const never = (): Promise<string> => Promise.withResolvers<string>().promise;

const given =
  (...args: readonly string[]) =>
  () =>
    args;
const ofAccount =
  (...args: readonly string[]) =>
  () => [...args, ...OF_ACCOUNT];

/** Commands that change rows, in the order in which they run on one database. */
const COMMANDS: Readonly<Record<string, CommandCase>> = {
  "accounts set-plan": { args: given("main", "growth"), changes: "accounts" },
  "accounts disable": { args: given("main"), changes: "accounts" },
  "accounts enable": { args: given("main"), changes: "accounts" },
  "users add": { args: given("ada@example.com", "--account", "main"), changes: "users" },
  "users reset": { args: given("ada@example.com"), changes: "setup_links" },
  "users remove": { args: given("ada@example.com"), changes: "users" },
  "keys create": { args: ofAccount("--name", "second"), changes: "api_keys" },
  "keys rotate": { args: ({ keyId }) => [keyId], changes: "key_secrets" },
  "keys revoke": { args: ({ keyId }) => [keyId], changes: "api_keys" },
  "credits grant": { args: given("main", "5"), changes: "ledger" },
  "suppress add": { args: given("x@b.example"), shared: { suppressions: 1, audit_log: 1 }, changes: null },
  "suppress remove": { args: given("kept1@b.example"), shared: { suppressions: 1, audit_log: 1 }, changes: null },
  "blocklist targets add": { args: ofAccount("1.2.3.4"), changes: "blocklist_targets" },
  "blocklist targets remove": { args: ofAccount("listed.example"), changes: "blocklist_targets" },
  "dmarc domains add": { args: ofAccount("new.example"), changes: "dmarc_domains" },
  "dmarc domains update": { args: ofAccount("example.com", "--label", "x"), changes: "dmarc_domains" },
  "dmarc domains verify": { args: ofAccount("example.com"), changes: "dmarc_domains" },
  "dmarc classify": { args: ofAccount("example.com", "threat", "own"), changes: "dmarc_source_words" },
  "dmarc import": { args: given(REPORT, "--account", "main"), changes: "dmarc_reports" },
  "dmarc retry": { args: given("--all", "--account", "main"), changes: "dmarc_ingestions" },
  "dmarc domains remove": { args: ofAccount("example.com"), changes: "dmarc_domains" },
  "jobs cancel": { args: ({ runningList }) => [runningList, ...OF_ACCOUNT], changes: "bulk_jobs" },
  "jobs retry": { args: ({ endedList }) => [endedList, ...OF_ACCOUNT], changes: "bulk_jobs" },
  "jobs remove": { args: ({ runningList }) => [runningList, ...OF_ACCOUNT], changes: "bulk_jobs" },
  "webhooks rotate": { args: ofAccount(), changes: "webhook_secrets" },
  "webhooks redeliver": {
    args: ({ failedDelivery }) => [failedDelivery, ...OF_ACCOUNT],
    changes: "webhook_deliveries",
  },
  "webhooks cancel": { args: ({ pendingDelivery }) => [pendingDelivery, ...OF_ACCOUNT], changes: "webhook_deliveries" },
  "notifications set": { args: ofAccount("--webhook-url", "https://hooks.example/"), changes: "account_notifications" },
  "notifications stop": { args: given("a@example.com", "--account", "main"), changes: "mail_subscriptions" },
  "notifications resume": { args: given("a@example.com", "--account", "main"), changes: "mail_subscriptions" },
  "accounts rename": { args: given("main", "renamed"), changes: "accounts" },
  "accounts delete": { args: given("renamed", "--yes"), changes: "accounts" },
};

/** Commands that are not run here, and why. */
const NOT_HERE: Readonly<Record<string, string>> = {
  "accounts create": "the new account is another one",
  erase: "erases an address of every account",
  migrate: "of the whole database",
  restore: "of the whole database",
  compact: "of the whole database",
  backup: "writes a file",
  serve: "its operations are those of the API",
  "blocklist targets import": "the use case of targets add",
  "blocklist targets discover": "the use case of targets add",
  "blocklist targets check": "queries blocklists",
  "webhooks test": "the use case of POST /v1/webhooks/test",
};

const READING =
  /^(verify|inspect .*|doctor|config|version|usage|audit|.* (list|show|history|results|secret|deliveries|lists)|dmarc (sources|advice|health|imap-check|export)|blocklist (check|lists))$/;

let ids: Ids | null = null;

/** The database with the account and the one beside it. */
const prepare = async (): Promise<void> => {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  await Bun.write(REPORT, sampleReportXml({ reportId: "2" }));
  const app = new TestApp({ path, settings: FULL_SETTINGS });
  const { request: _request, app: _app, ...account } = await fillAccount(app);
  for (const n of [1, 2, 3]) app.db.sqlite.run("INSERT INTO suppressions VALUES (?, NULL, 1)", [`kept${n}@b.example`]);
  const accountId = app.accountId();
  const key = app.db.sqlite.query<{ id: string }, []>("SELECT id FROM api_keys WHERE name = 'first'").get();
  copyAccount(app.db.sqlite, accountId, { toNewAccount: true });
  copyAccount(app.db.sqlite, accountId, { fromMode: "test" });
  ids = { ...account, accountId, keyId: key?.id ?? "" };
  app.close();
};

beforeAll(prepare);

const leaves = (command: Command, names: readonly string[] = []): readonly string[] =>
  command.commands.length === 0
    ? [names.join(" ")]
    : command.commands.flatMap((child) => leaves(child, [...names, child.name()]));

describe("commands", () => {
  test("that change something are all here, or have a reason why not", async () => {
    const names = leaves(await createProgram(systemIo)).filter((name) => !READING.test(name));
    expect([...Object.keys(COMMANDS), ...Object.keys(NOT_HERE)].toSorted()).toEqual(names.toSorted());
  });

  test.each(Object.entries(COMMANDS))(
    "%s changes no row of another account or of the other mode",
    async (name, command) => {
      if (ids === null) throw new Error("not prepared");
      const args = [...name.split(" "), ...(command.args?.(ids) ?? [])];
      const sqlite = new Sqlite(path);
      try {
        const ownsBoth = /^(accounts|keys|dmarc (import|retry))\b/.test(name);
        const actor = { accountId: ids.accountId, ...(ownsBoth ? {} : { mode: "test" as const }) };
        const { value, changed } = await watchOthers(
          sqlite,
          actor,
          () => run(args, { settings: FULL_SETTINGS, untilSignal: never }),
          command.shared,
        );
        expect([value.status, value.err]).toEqual([0, value.err]);
        if (command.changes !== null) expect(changed).toContain(command.changes);
      } finally {
        sqlite.close();
      }
    },
  );
});
