import { DAY_MS } from "../foundation/base/days.ts";
import { Database as Sqlite } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Command } from "commander";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { actorOfProcess } from "../accounts/audit-store.ts";
import { TestApp } from "../testing/app.ts";
import { copyAccount } from "../testing/account-copy.ts";
import { changedWithoutEntry, entriesAddedBy, requireEntry } from "../testing/audit-entries.ts";
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
const TARGETS = join(dataDir, "..", "targets.csv");

type Ids = Omit<FullAccount, "app" | "request"> & {
  readonly accountId: string;
  readonly keyId: string;
  readonly formKeyId: string;
  readonly hook: string;
  readonly share: string;
};

interface CommandCase {
  readonly args?: (ids: Ids) => readonly string[];
  readonly shared?: SharedChanges;
  /** A table that must change: otherwise the command did nothing. Null where the change is not a row of the account. */
  readonly changes: string | null;
  /** Of the entry in the audit log. Default: the words of the command with dots. */
  readonly action?: string;
  readonly subject: string | ((ids: Ids, sqlite: Sqlite) => string) | null;
  /** Whom the entry names. Default: the account. */
  readonly owner?: "service" | "new account";
}

const never = (): Promise<string> => Promise.withResolvers<string>().promise;

const given =
  (...args: readonly string[]) =>
  () =>
    args;
const ofAccount =
  (...args: readonly string[]) =>
  () => [...args, ...OF_ACCOUNT];

const SERVICE_ENTRY = { changes: null, owner: "service", subject: null } as const;
const OF_SERVICE = { shared: { suppressions: 1, audit_log: 1 }, ...SERVICE_ENTRY };

const target = (act: string, subject: string) => ({ action: `targets.${act}`, subject });

const idOf = (sqlite: Sqlite, sql: string): string => sqlite.query<{ id: string }, []>(sql).get()?.id ?? "";
const idOfUser = (_: Ids, sqlite: Sqlite): string =>
  idOf(sqlite, "SELECT id FROM users WHERE email = 'ada@example.com'");
const idOfSecondKey = (_: Ids, sqlite: Sqlite): string => idOf(sqlite, "SELECT id FROM api_keys WHERE name = 'second'");

/** Commands that change rows, in the order in which they run on one database. */
const COMMANDS: Readonly<Record<string, CommandCase>> = {
  "accounts create": {
    args: given("another"),
    shared: { accounts: 1, ledger: 1, balances: 1, audit_log: 1 },
    ...{ changes: null, subject: "another", owner: "new account" },
  },
  "accounts set-plan": { args: given("main", "growth"), changes: "accounts", subject: "main" },
  "accounts disable": { args: given("main"), changes: "accounts", subject: "main" },
  "accounts enable": { args: given("main"), changes: "accounts", subject: "main" },
  "users add": { args: given("ada@example.com", "--account", "main"), changes: "users", subject: idOfUser },
  "users reset": { args: given("ada@example.com"), changes: "setup_links", subject: idOfUser },
  "users remove": { args: given("ada@example.com"), changes: "users", subject: idOfUser },
  "keys create": { args: ofAccount("--name", "second"), changes: "api_keys", subject: idOfSecondKey },
  "keys change": {
    args: ({ formKeyId }) => [formKeyId, "--per-day", "5"],
    ...{ changes: "api_keys", subject: ({ formKeyId }: Ids) => formKeyId },
  },
  "keys rotate": { args: ({ keyId }) => [keyId], changes: "key_secrets", subject: ({ keyId }) => keyId },
  "keys revoke": { args: ({ keyId }) => [keyId], changes: "api_keys", subject: ({ keyId }) => keyId },
  "credits grant": { args: given("main", "5"), changes: "ledger", subject: "main" },
  erase: { args: given("nobody@nowhere.example", "--yes"), shared: { audit_log: 2 }, ...SERVICE_ENTRY },
  "suppress add": { args: given("x@b.example"), ...OF_SERVICE },
  "suppress remove": { args: given("kept1@b.example"), ...OF_SERVICE },
  "blocklist targets add": { args: ofAccount("1.2.3.4"), changes: "blocklist_targets", ...target("add", "1.2.3.4") },
  "blocklist targets import": {
    args: ofAccount(TARGETS),
    changes: "blocklist_targets",
    ...target("add", "imported.example"),
  },
  "blocklist targets discover": {
    args: ofAccount("discovered.example"),
    changes: "blocklist_targets",
    ...target("add", "discovered.example"),
  },
  "blocklist targets check": {
    args: ofAccount("listed.example"),
    changes: "blocklist_checks",
    ...target("check", "listed.example"),
  },
  "blocklist targets remove": {
    args: ofAccount("listed.example"),
    changes: "blocklist_targets",
    ...target("remove", "listed.example"),
  },
  "dmarc domains add": { args: ofAccount("new.example"), changes: "dmarc_domains", subject: "new.example" },
  "dmarc domains update": {
    args: ofAccount("example.com", "--label", "x", "--tag", "client-a"),
    changes: "dmarc_domains",
    subject: "example.com",
  },
  "dmarc domains verify": {
    args: ofAccount("example.com"),
    changes: "dmarc_domains",
    action: "dmarc.domains.check",
    subject: "example.com",
  },
  "dmarc links create": {
    args: ofAccount("example.com", "--until", new Date(Date.now() + DAY_MS).toISOString()),
    changes: "dmarc_shares",
    action: "dmarc.shares.add",
    subject: "example.com",
  },
  "dmarc links revoke": {
    args: ({ share }) => ["example.com", share, ...OF_ACCOUNT],
    changes: "dmarc_shares",
    action: "dmarc.shares.revoke",
    subject: "example.com",
  },
  "dmarc tags digest": {
    args: ofAccount("client-a", "--recipient", "it@client-a.example"),
    changes: "dmarc_tag_digests",
    action: "dmarc.tags.set",
    subject: "client-a",
  },
  "dmarc mta-sts set": {
    args: ofAccount("example.com", "testing"),
    changes: "dmarc_mta_sts",
    action: "dmarc.mta-sts",
    subject: "example.com",
  },
  "dmarc classify": {
    args: ofAccount("example.com", "threat", "own"),
    changes: "dmarc_source_words",
    subject: "example.com",
  },
  "dmarc reporters accept": {
    args: ofAccount("partner-mail.net"),
    ...{ changes: "dmarc_accepted_reporters", subject: "partner-mail.net" },
  },
  "dmarc reporters withdraw": {
    args: ofAccount("partner-mail.net"),
    ...{ changes: "dmarc_accepted_reporters", subject: "partner-mail.net" },
  },
  "dmarc import": {
    args: given(REPORT, "--account", "main"),
    changes: "dmarc_reports",
    action: "dmarc.reports.import",
    subject: null,
  },
  "dmarc retry": {
    args: given("--all", "--account", "main"),
    changes: "dmarc_ingestions",
    action: "dmarc.reports.retry",
    subject: null,
  },
  "dmarc domains remove": { args: ofAccount("example.com"), changes: "dmarc_domains", subject: "example.com" },
  "lists cancel": {
    action: "jobs.cancel",
    args: ({ runningList }) => [runningList, ...OF_ACCOUNT],
    changes: "bulk_jobs",
    subject: ({ runningList }) => runningList,
  },
  "lists retry": {
    action: "jobs.retry",
    args: ({ endedList }) => [endedList, ...OF_ACCOUNT],
    changes: "bulk_jobs",
    subject: ({ endedList }) => endedList,
  },
  "lists remove": {
    action: "jobs.remove",
    args: ({ runningList }) => [runningList, ...OF_ACCOUNT],
    changes: "bulk_jobs",
    subject: ({ runningList }) => runningList,
  },
  "webhooks rotate": { args: ofAccount(), changes: "webhook_secrets", subject: "test" },
  "webhooks secret": { args: ofAccount(), changes: null, action: "webhooks.secret.show", subject: "test" },
  "webhooks test": { args: ({ hook }) => [hook, ...OF_ACCOUNT], changes: null, subject: "test" },
  "webhooks redeliver": {
    args: ({ failedDelivery }) => [failedDelivery, ...OF_ACCOUNT],
    changes: "webhook_deliveries",
    subject: ({ failedDelivery }) => failedDelivery,
  },
  "webhooks cancel": {
    args: ({ pendingDelivery }) => [pendingDelivery, ...OF_ACCOUNT],
    changes: "webhook_deliveries",
    subject: ({ pendingDelivery }) => pendingDelivery,
  },
  "notifications set": {
    args: ofAccount("--webhook-url", "https://hooks.example/"),
    changes: "account_notifications",
    subject: "test",
  },
  "notifications windows add": {
    args: ofAccount("--day", "mon", "--from", "22:00", "--to", "06:00"),
    changes: "maintenance_windows",
    subject: "test",
  },
  "notifications windows remove": {
    args: ({ window }) => [window, ...OF_ACCOUNT],
    changes: "maintenance_windows",
    subject: "test",
  },
  "notifications stop": {
    args: given("a@example.com", "--account", "main"),
    changes: "mail_subscriptions",
    subject: "live",
  },
  "notifications resume": {
    args: given("a@example.com", "--account", "main"),
    changes: "mail_subscriptions",
    subject: "live",
  },
  "accounts rename": { args: given("main", "renamed"), changes: "accounts", subject: "main" },
  "accounts delete": { args: given("renamed", "--yes"), changes: "accounts", subject: ({ accountId }) => accountId },
};

/** Commands that are not run here, and why. */
const NOT_HERE: Readonly<Record<string, string>> = {
  migrate: "the schema, which every command and server migrates: cli/data-directory.test.ts",
  restore: "of the whole database: cli/backup.test.ts, with its entry in the restored one",
  "accounts move": "changes no row, and is in the audit log: cli/account-move.test.ts",
  "accounts take": "adds an account: cli/account-move.test.ts, with its entry",
  purge: "removes what has expired of every account: cli/purge.test.ts, with its entries",
  compact: "changes no row: cli/compact.test.ts",
  backup: "writes a file, and changes no row: cli/backup.test.ts",
  export: "changes no row, and is in the audit log: cli/export.test.ts",
  "bounces add": "stores nothing in test mode: cli/bounces.test.ts",
  serve: "its operations are those of the API",
};

const READING =
  /^(verify|inspect .*|status|doctor|mcp|config|version|help|completion|usage|audit|.* (list|show|history|results|deliveries|lists|summary)|dmarc (sources|advice|health|imap-check|export|own-hosts|addresses|tls-reports|record-history|mta-sts show)|blocklist (check|lists)|bounces imap-check|lists (compare|changes))$/;

let ids: Ids | null = null;

/** The database with the account and the one beside it. */
const prepare = async (): Promise<void> => {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  await Bun.write(REPORT, sampleReportXml({ reportId: "2" }));
  await Bun.write(TARGETS, "target\nimported.example\n");
  const app = new TestApp({ path, settings: FULL_SETTINGS });
  const { request, app: _app, ...account } = await fillAccount(app);
  const link = { expires_at: new Date(app.clock.nowMs() + DAY_MS).toISOString() };
  const share = (await request("POST", `/v1/dmarc/domains/${account.domain}/report-links`, link)).id;
  for (const n of [1, 2, 3]) app.db.sqlite.run("INSERT INTO suppressions VALUES (?, NULL, 1)", [`kept${n}@b.example`]);
  const accountId = app.accountId();
  const { id: formKeyId } = app.newKey({ forms: { origins: ["https://shop.example"] } });
  const key = app.db.sqlite.query<{ id: string }, []>("SELECT id FROM api_keys WHERE name = 'first'").get();
  copyAccount(app.db.sqlite, accountId, { toNewAccount: true });
  copyAccount(app.db.sqlite, accountId, { fromMode: "test" });
  ids = { ...account, share, accountId, formKeyId, keyId: key?.id ?? "", hook: `http://127.0.0.1:${receiver.port}/` };
  app.close();
};

/** Accepts webhooks. */
const receiver = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("") });

beforeAll(prepare);
afterAll(() => receiver.stop(true));

const accountIdIn = (sqlite: Sqlite, { owner }: CommandCase, accountId: string): string | null => {
  if (owner === undefined) return accountId;
  return owner === "service" ? null : idOf(sqlite, "SELECT id FROM accounts WHERE name = 'another'");
};

/** Empty where the row does not exist yet, or no longer. */
const subjectOf = ({ subject }: CommandCase, of: Ids, sqlite: Sqlite): string | null =>
  typeof subject === "function" ? subject(of, sqlite) : subject;

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
    "%s changes no row of another account or of the other mode, and is in the audit log",
    async (name, command) => {
      if (ids === null) throw new Error("not prepared");
      const { accountId } = ids;
      const args = [...name.split(" "), ...(command.args?.(ids) ?? [])];
      const sqlite = new Sqlite(path);
      try {
        const ownsBoth = /^(accounts|keys|dmarc (import|retry))\b/.test(name);
        const actor = { accountId, ...(ownsBoth ? {} : { mode: "test" as const }) };
        const before = subjectOf(command, ids, sqlite);
        const work = () => run(args, { settings: FULL_SETTINGS, untilSignal: never });
        const { value: failed, rows } = await changedWithoutEntry(sqlite, work);
        expect([rows, failed.status]).toEqual([[], 1]);
        const { value: watched, entries } = await entriesAddedBy(sqlite, () =>
          watchOthers(sqlite, actor, work, command.shared),
        );
        const { value, changed } = watched;
        expect([value.status, value.err]).toEqual([0, value.err]);
        if (command.changes !== null) expect(changed).toContain(command.changes);
        requireEntry(
          { changed, entries },
          {
            user: actorOfProcess().user,
            action: command.action ?? name.replaceAll(" ", "."),
            accountId: accountIdIn(sqlite, command, accountId),
            subject: before === "" ? subjectOf(command, ids, sqlite) : before,
          },
        );
      } finally {
        sqlite.close();
      }
    },
  );
});
