import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Command } from "commander";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import blocklists from "../../fixtures/blocklists.json" with { type: "json" };
import { createCommandLine } from "../testing/command-line.ts";
import { createProgram } from "./cli.ts";

/** A screen is cleared, a title set, text turned round and hidden. */
const EVIL = "\u001b[2J\u009b31m\u007f\r\u202e\u200bx";
const UNSAFE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

const { run } = createCommandLine();
const folder = mkdtempSync(join(tmpdir(), "postwarden-evil-"));
const evilFile = join(folder, `${EVIL}.xml`);
const listFile = join(folder, "list.csv");
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  writeFileSync(evilFile, `<feedback>${EVIL}</feedback>`);
  writeFileSync(listFile, `email,${EVIL}\n${EVIL}@example.com,${EVIL}\n`);
  mkdirSync(join(folder, EVIL));
  await run(["accounts", "create", "anna"]);
  await run(["suppress", "add", "a@example.com", "--note", EVIL]);
});

const E = EVIL;
const COMMANDS: ReadonlyArray<readonly string[]> = [
  ["accounts", "list"],
  ["accounts", "create", E],
  ["accounts", "create", "bert", "--plan", E],
  ["accounts", "show", E],
  ["accounts", "set-plan", E, "free"],
  ["accounts", "set-plan", "anna", "free", "--rate", E],
  ["accounts", "rename", "anna", E],
  ["accounts", "disable", E],
  ["accounts", "move", E, E],
  ["accounts", "take", E],
  ["accounts", "enable", E],
  ["audit"],
  ["audit", "--account", E, "--since", E],
  ["keys", "list", "--account", E],
  ["keys", "create", "--account", "anna", "--mode", "test", "--name", E, "--scopes", E, "--expires", E],
  ["keys", "create", "--account", "anna", "--mode", "test", "--expires", E],
  ["keys", "create", "--account", "anna", "--mode", "test", "--origins", E, "--per-day", E, "--check", E],
  ["keys", "change", E, "--origins", E, "--visitor-per-hour", E],
  ["keys", "rotate", E, "--grace-hours", E],
  ["keys", "revoke", E],
  ["users", "list", "--account", E],
  ["users", "add", E, "--account", "anna", "--role", E],
  ["users", "add", E, "--account", "anna"],
  ["users", "add", `x${E}@example.com`, "--account", "anna", "--password-stdin"],
  ["users", "remove", E],
  ["users", "reset", E],
  ["users", "list"],
  ["credits", "show", E],
  ["credits", "grant", "anna", E],
  ["credits", "grant", "anna", "1", "--note", E],
  ["credits", "history", "anna"],
  ["credits", "history", E, "--limit", E],
  ["suppress", "add", E],
  ["suppress", "add", "--file", join(folder, E)],
  ["suppress", "list"],
  ["suppress", "remove", E],
  ["bounces", "add", evilFile, "--account", "anna"],
  ["bounces", "list", "--account", "anna"],
  ["bounces", "summary", "--days", E],
  ["lists", "list", "--account", "anna"],
  ...["show", "cancel", "retry", "remove", "results", "compare"].map((name) => ["lists", name, E]),
  ["lists", "changes", E, "--change", "gone"],
  ["notifications", "show", "--account", E],
  ["notifications", "set", "--account", "anna", "--webhook-url", E],
  ["notifications", "windows", "list", "--account", E],
  ["notifications", "windows", "add", "--account", "anna", "--until", E],
  ["notifications", "windows", "remove", E, "--account", "anna"],
  ["notifications", "stop", E, "--account", "anna"],
  ["notifications", "resume", `${E}@example.com`, "--account", "anna"],
  ["webhooks", "test", E, "--account", "anna"],
  ["usage", "--account", E],
  ["usage", "--account", "anna", "--by", "key", "--from", E],
  ["webhooks", "secret", "--account", E],
  ["webhooks", "rotate", "--account", E],
  ["webhooks", "deliveries", "--account", E, "--status", E],
  ["webhooks", "deliveries", "--account", "anna", "--limit", E],
  ["webhooks", "redeliver", E, "--account", "anna"],
  ["webhooks", "cancel", "--account", "anna", "--since", E],
  ["blocklist", "check", E],
  ["blocklist", "lists"],
  ["blocklist", "targets", "add", E, "--account", "anna", "--label", E],
  ["blocklist", "targets", "add", "8.8.8.8", "--account", "anna", "--label", `x${E}`],
  ["blocklist", "targets", "list", "--account", "anna", "--label", E],
  ["blocklist", "targets", "list", "--account", "anna"],
  ["blocklist", "targets", "import", E, "--account", "anna"],
  ["blocklist", "targets", "import", "-", "--account", "anna"],
  ["blocklist", "targets", "discover", E, "--account", "anna", "--label", E],
  ["blocklist", "targets", "check", E, "--account", E],
  ["blocklist", "targets", "remove", E, "--account", "anna"],
  ["dmarc", "domains", "list", "--account", "anna"],
  ["dmarc", "domains", "add", "example.com", "--mode", "test", "--account", "anna", "--label", `x${E}`],
  ["dmarc", "domains", "add", E, "--account", "anna"],
  ...["show", "verify", "update", "remove"].map((name) => ["dmarc", "domains", name, E, "--account", "anna"]),
  ["dmarc", "sources", E, "--account", "anna"],
  ["dmarc", "classify", E, "authorized", E, "--account", "anna"],
  ["dmarc", "advice", E, "--account", "anna"],
  ["dmarc", "reporters", "list"],
  ["dmarc", "reporters", "accept", E],
  ["dmarc", "reporters", "withdraw", E],
  ["dmarc", "import", evilFile, "--account", "anna"],
  ["dmarc", "import", join(folder, E, "none")],
  ["dmarc", "retry", E],
  ["dmarc", "imap-check"],
  ["bounces", "imap-check"],
  ["dmarc", "export", E],
  ["dmarc", "export", "example.com", "--from", E],
  ["dmarc", "health", E],
  ["dmarc", "own-hosts", E],
  ["dmarc", "record-history", E],
  ["dmarc", "addresses", E, E],
  ["dmarc", "tls-reports", E],
  ["dmarc", "links", "list", E],
  ["dmarc", "links", "create", E, "--until", "2026-12-31T00:00:00Z", "--note", E],
  ["dmarc", "links", "revoke", E, E],
  ["dmarc", "tags", "list"],
  ["dmarc", "tags", "digest", E, "--period", "weekly"],
  ["dmarc", "mta-sts", "show", E],
  ["dmarc", "mta-sts", "set", E, "testing"],
  ["dmarc", "health", "example.com", "--selector", E],
  ["inspect", "address", `${E}@example.com`],
  ["inspect", "reply", `550 ${E}`],
  ["inspect", "record", `v=DMARC1; p=${E}`],
  ["inspect", "report", evilFile],
  ["inspect", "report", join(folder, E, "none")],
  ["verify", `${E}@example.com`],
  ["verify", "--evidence", `${E}@example.com`],
  ["verify", "--file", listFile, "--out", join(folder, `${E}.csv`), "--column", E],
  ["verify", "--file", join(folder, E, "none"), "--out", join(folder, "out.csv")],
  ["status"],
  ["purge"],
  ["purge", "--dry-run"],
  ["doctor", "--domain", E],
  ["mcp"],
  ["mcp", "--url", E],
  ["mcp", "--url", "http://localhost:1", "--key-file", join(folder, E, "none")],
  ["config"],
  ["migrate"],
  ["backup", `${E}/none.db`],
  ["restore", E],
  ["accounts", "delete", E],
  ["erase", E],
  ["erase", `${E}@example.com`],
  ["compact", "--data-dir", join(folder, E)],
  ["version"],
  ["help", E],
  ["completion", E],
  ["export", "--address", `${E}@example.com`, "--out", join(folder, E, "none.zip")],
  ["completion", "bash"],
  ["serve"],
  [E],
  ["accounts", E],
  ["accounts", "list", `--${E}`],
  ["config", "--env-file", E],
  ["accounts", "list", "--data-dir", join(folder, E, "none")],
];

const settings = { DNS_SERVERS: "127.0.0.1:9", PORT: "0", DNSBL_SIGNAL: "off", HOST: "127.0.0.1" };

test.each(COMMANDS.map((args) => [args]))("what %j prints does nothing to a terminal", async (args) => {
  for (const flags of [[], ["--json"]]) {
    const { out, err } = await run([...args, ...flags], { settings, stdin: [`${E}@example.com`] });
    expect(out + err).not.toMatch(UNSAFE);
    for (const line of flags.length === 0 ? [] : `${out}\n${err}`.split("\n"))
      if (line.startsWith("{")) expect(() => JSON.parse(line)).not.toThrow();
  }
});

test("settings are named safely, values and names", async () => {
  for (const environment of [{ POSTWARDEN_PORT: E }, { [`POSTWARDEN_${E}`]: "1" }, { POSTWARDEN_SOURCE_ADDRESSES: E }])
    expect((await run(["config"], { environment })).err).not.toMatch(UNSAFE);
});

test("names and notes of lists in a catalogue of the operator's are printed safely", async () => {
  const path = join(folder, "catalogue.json");
  const lists = blocklists.lists.filter(({ id }) => id === "spamcop").map((list) => ({ ...list, name: E, notes: E }));
  writeFileSync(path, JSON.stringify({ ...blocklists, lists }));
  for (const flags of [[], ["--json"]]) {
    const { status, out } = await run(["blocklist", "lists", ...flags], { settings: { BLOCKLIST_CATALOGUE: path } });
    expect(status).toBe(0);
    if (flags.length > 0) expect(out).toContain("\\u202e");
    expect(out).not.toMatch(UNSAFE);
  }
});

test("every command is tried", async () => {
  const leaves = (command: Command, path: readonly string[]): string[] =>
    command.commands.length === 0
      ? [path.join(" ")]
      : command.commands.flatMap((child) => leaves(child, [...path, child.name()]));
  const io = {
    environment: {},
    settingsFile: null,
    out: () => undefined,
    err: () => undefined,
    status: null,
    stdinLines: () => noLines(),
  };
  const bytes = { write: async () => undefined, stdin: () => noBytes() };
  const rest = { untilSignal: async () => "SIGTERM", onHangup: () => undefined, ...bytes };
  const terminal = { stdinIsTerminal: true, stdoutKind: "terminal" as const, columns: 80 };
  const program = await createProgram({ ...io, ...rest, ...terminal });
  const tried = new Set(
    COMMANDS.flatMap((args) => [args[0] ?? "", args.slice(0, 2).join(" "), args.slice(0, 3).join(" ")]),
  );
  expect(leaves(program, []).filter((name) => !tried.has(name))).toEqual([]);
});

async function* noBytes(): AsyncIterable<Uint8Array> {
  yield* [];
}

async function* noLines(): AsyncIterable<string> {
  yield* [];
}
