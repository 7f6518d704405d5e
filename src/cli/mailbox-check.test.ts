import { expect, test } from "bun:test";
import { bounceMailOf } from "../testing/bounce-mails.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { sampleReportMail } from "../testing/dmarc-reports.ts";
import { createImapStubs } from "../testing/imap-stub.ts";

const newStub = createImapStubs();
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

const setUp = async (folder = "INBOX") => {
  const stub = newStub();
  const { run } = createCommandLine();
  await run(["accounts", "create", "main"]);
  const settings = { IMAP_URL: `imap://user:secret@127.0.0.1:${stub.port}/${folder}` };
  return { stub, run, settings };
};

test("`dmarc imap-check` looks at the folder and changes nothing", async () => {
  const { stub, run, settings } = await setUp();
  stub.deliver(text(sampleReportMail({ reportId: "1" })));
  const { status, out } = await run(["dmarc", "imap-check"], { settings });
  expect([status, out]).toEqual([0, expect.stringContaining("The folder has 1 message, 1 of them not fetched yet.")]);
  expect(out).not.toContain("secret");
  expect(stub.commands.join()).toContain("EXAMINE");
  expect(stub.commands.join()).not.toMatch(/SELECT|STORE|FETCH|CREATE/);
  expect((await run(["dmarc", "imap-check", "--json"], { settings })).json).toMatchObject({ messages: 1, idle: true });
});

test("`dmarc imap-check` says what is missing", async () => {
  const { run, settings } = await setUp("Reprots");
  const missing = await run(["dmarc", "imap-check"], { settings });
  expect([missing.status, missing.err]).toEqual([1, expect.stringContaining('The folders are: "INBOX"')]);
  const none = await run(["dmarc", "imap-check"]);
  expect([none.status, none.err]).toEqual([1, expect.stringContaining("POSTWARDEN_IMAP_URL is not set")]);
  await run(["accounts", "create", "another"]);
  const inbox = { ...settings, IMAP_URL: settings.IMAP_URL.replace("Reprots", "INBOX") };
  const several = await run(["dmarc", "imap-check"], { settings: inbox });
  expect([several.status, several.err]).toEqual([1, expect.stringContaining("Set POSTWARDEN_IMAP_ACCOUNT")]);
  const unknown = await run(["dmarc", "imap-check"], { settings: { ...inbox, IMAP_ACCOUNT: "nobody" } });
  expect([unknown.status, unknown.err]).toEqual([
    1,
    expect.stringContaining("POSTWARDEN_IMAP_ACCOUNT names an account that does not exist."),
  ]);
});

test("`serve` fetches what is there and what comes, flags it, and stops beside an open connection", async () => {
  const { stub, run, settings } = await setUp();
  stub.deliver(text(sampleReportMail({ reportId: "1" })));
  const serving = run(["serve"], {
    settings: { ...settings, PORT: "0", DNS_SERVERS: "127.0.0.1:9" },
    untilSignal: async () => {
      await stub.until(/^UID STORE 1 /);
      await stub.until(/^IDLE$/);
      stub.deliver(text(sampleReportMail({ reportId: "2" })));
      await stub.until(/^UID STORE 2 /);
      await stub.until(/^IDLE$/, 2);
      return "SIGTERM";
    },
  });
  expect((await serving).status).toBe(0);
  expect(stub.messages.map(({ flags }) => flags)).toEqual(["\\Seen", "\\Seen"]);
});

test("`serve` fetches bounces, and `bounces imap-check` counts what is left", async () => {
  const { stub, run, settings } = await setUp();
  const bounces = { BOUNCE_IMAP_URL: settings.IMAP_URL, BOUNCE_IMAP_SIGNED_BY: "anyone", BOUNCE_IMAP_AFTER: "delete" };
  stub.deliver(bounceMailOf("anna@b.example"));
  const look = await run(["bounces", "imap-check", "--json"], { settings: bounces });
  expect(look.json).toMatchObject({ messages: 1, messages_to_fetch: 1, after: "delete", account_problem: null });
  const serving = run(["serve"], {
    settings: { ...bounces, PORT: "0", DNS_SERVERS: "127.0.0.1:9" },
    untilSignal: async () => {
      await stub.until(/^IDLE$/);
      return "SIGTERM";
    },
  });
  expect((await serving).status).toBe(0);
  const { json } = await run(["bounces", "list", "--json"], { settings: bounces });
  expect(json).toMatchObject({ bounces: [{ email: "anna@b.example", kind: "hard", source: "mailbox" }] });
  const none = await run(["bounces", "imap-check"]);
  expect([none.status, none.err]).toEqual([1, expect.stringContaining("POSTWARDEN_BOUNCE_IMAP_URL is not set")]);
});
