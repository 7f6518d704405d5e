import { expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";
import { changesNothingOfOthers } from "../testing/other-account.ts";

const { run, dataDir } = createCommandLine();
const folder = mkdtempSync(join(tmpdir(), "postwarden-bounces-"));

const write = (name: string, text: string): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};

const LOG = `2026-01-01T00:00:00+00:00 mx postfix/smtp[1]: 4XyZ12: to=<anna@shop.example>, relay=mx.shop.example[192.0.2.1]:25, delay=1, delays=0/0/0/1, dsn=5.1.1, status=bounced (host mx.shop.example[192.0.2.1] said: 550 5.1.1 No such user)
2026-01-01T00:00:01+00:00 mx sshd[1]: hello
`;

test("a log is added, listed and summed up, and the audit log has it", async () => {
  await run(["accounts", "create", "main"]);
  const sqlite = new Sqlite(join(dataDir, "postwarden.db"));
  try {
    const id = sqlite.query<{ id: string }, []>("SELECT id FROM accounts").get()?.id ?? "";
    const { value, changed } = await changesNothingOfOthers(sqlite, { accountId: id, mode: "live" }, () =>
      run(["bounces", "add", write("mail.log", LOG), "--account", "main"]),
    );
    expect(value.out).toContain("1 stored, 0 already known, 1 are no bounces, 0 unreadable.");
    expect(changed).toContain("bounces");
    expect(sqlite.query("SELECT action FROM audit_log WHERE action = 'bounces.add'").all()).toHaveLength(1);
  } finally {
    sqlite.close();
  }
  const again = await run(["bounces", "add", write("mail.log", LOG), "--account", "main", "--json"]);
  expect(JSON.parse(again.out)).toMatchObject({ counts: { stored: 0, known: 1 } });
  expect((await run(["bounces", "list", "--account", "main"])).out).toContain("anna@shop.example");
  expect((await run(["bounces", "summary", "--days", "365", "--account", "main"])).out).toContain("(unknown)");
});

test.each([
  ["half.json", '[{"event":', "is not valid JSON"],
  ["other.json", '{"hello":"world"}', "no events of Amazon SES"],
])("%s is refused with its reason", async (name, text, reason) => {
  const { status, err } = await run(["bounces", "add", write(name, text), "--account", "main"]);
  expect(status).toBe(1);
  expect(err).toContain(reason);
});
