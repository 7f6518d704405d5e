import { describe, expect, test } from "bun:test";
import { MailboxStore } from "../../../foundation/mailbox/mailbox-store.ts";
import { type MailboxSession, MailboxSync } from "../../../foundation/mailbox/mailbox-sync.ts";
import { MessageMarker } from "../../../foundation/mailbox/message-marker.ts";
import type { ImapMark } from "../../../foundation/net/imap-session.ts";
import { createApps, type TestApp } from "../../../testing/app.ts";
import { bounceMailOf, deliveryReportMail, failedRecipient, signedMessageTo } from "../../../testing/bounce-mails.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import { FakeFolder } from "../../../testing/mailbox-harness.ts";
import { watchOthers } from "../../../testing/other-account.ts";
import { KEY_RECORD } from "../../../testing/signed-message.ts";
import { createStubs } from "../../../testing/smtp-dial.ts";
import { BOUNCE_MAILBOX_TABLES, BounceMessages, KEY_WAIT_MS } from "./bounce-mailbox.ts";

const KEY = "s1._domainkey.shop.example";
const ANNA = "anna@shop.example.com";
const start = createApps();
const startStub = createStubs();

const ZONE: Zone = {
  "shop.example.com": { MX: [[10, "mx.example.com"]] },
  "mx.example.com": { A: ["127.0.0.1"] },
};

/** The sync of a mailbox of an account; `keys`: the zone where the keys of signatures are looked up. */
const openSync = (
  app: TestApp,
  { after = { kind: "seen" }, keys = { [KEY]: { TXT: [KEY_RECORD] } } }: { after?: ImapMark; keys?: Zone } = {},
) => {
  const { runtime, bounces } = app.service;
  const store = new MailboxStore(app.db, BOUNCE_MAILBOX_TABLES);
  const mail = new BounceMessages(runtime, {
    ...{ bounces, resolver: createZoneResolver(keys), signedBy: ["shop.example"] },
  });
  const marker = new MessageMarker(runtime, { store, messages: mail, after, onRefusal: () => undefined });
  const sync = new MailboxSync(runtime, {
    ...{ store, mail, marker, mailbox: "box" },
    reserve: { isLow: () => false },
  });
  return {
    store,
    pass: (folder: MailboxSession) => sync.run(folder, app.accountId(), () => false),
  };
};

const forged = (address: string): string =>
  deliveryReportMail({ recipients: [failedRecipient(address)], returned: signedMessageTo("mallory@evil.example") });
const rows = (app: TestApp) =>
  app.db.sqlite.query("SELECT email, kind, source FROM bounces ORDER BY email").all() as readonly object[];

describe("a pass over the mailbox", () => {
  test("stores bounces of messages that were ours, and flags their mails", async () => {
    const app = start();
    app.newKey({ mode: "live" });
    const folder = new FakeFolder();
    folder.deliver(3, bounceMailOf(ANNA)).deliver(4, bounceMailOf("bert@shop.example.com", { status: "5.2.2" }));
    const { store, pass } = openSync(app);
    const { changed } = await watchOthers(
      app.db.sqlite,
      { accountId: app.accountId(), mode: "live" },
      () => pass(folder),
      {
        bounce_mailboxes: 1,
      },
    );
    expect(changed).toEqual(["bounces"]);
    expect(folder.log).toEqual(["read 3", "read 4", "seen 3,4"]);
    expect(rows(app)).toEqual([
      { email: ANNA, kind: "hard", source: "mailbox" },
      { email: "bert@shop.example.com", kind: "soft", source: "mailbox" },
    ]);
    expect([await pass(folder), store.countMarks(), store.find("box")?.lastUid]).toEqual(["done", 0, 4]);
    expect(folder.log).toHaveLength(3);
  });

  test.each<[ImapMark, readonly string[]]>([
    [{ kind: "move", folder: "Done" }, ["move 1,2"]],
    [{ kind: "delete" }, ["delete 1", "seen 2"]],
    [{ kind: "keep" }, []],
  ])("with %o marks bounces, deletes no notice, and leaves what it does not believe", async (after, marks) => {
    const app = start();
    app.newKey({ mode: "live" });
    const folder = new FakeFolder();
    folder
      .deliver(1, bounceMailOf(ANNA))
      .deliver(2, bounceMailOf("bert@shop.example.com", { action: "delayed" }))
      .deliver(3, forged("victim@shop.example.com"))
      .deliver(4, "From: a@b.example\r\nSubject: Re: Your order\r\n\r\nThank you!\r\n");
    expect(await openSync(app, { after }).pass(folder)).toBe("done");
    expect(folder.log.filter((line) => !line.startsWith("read")).toSorted()).toEqual([...marks]);
    expect(rows(app)).toHaveLength(1);
  });

  test("stores a bounce once, also after UIDVALIDITY changed", async () => {
    const app = start();
    app.newKey({ mode: "live" });
    const folder = new FakeFolder();
    const { pass } = openSync(app);
    await pass(folder.deliver(1, bounceMailOf(ANNA)));
    folder.uidValidity = "8";
    expect(await pass(folder)).toBe("done");
    expect(rows(app)).toHaveLength(1);
  });
});

describe("while a key cannot be looked up", () => {
  test("its mails wait, and are stored when it can be", async () => {
    const app = start();
    app.newKey({ mode: "live" });
    const keys: Record<string, Zone[string]> = { [KEY]: "servfail" };
    const { pass } = openSync(app, { keys });
    const folder = new FakeFolder().deliver(1, bounceMailOf(ANNA));
    for (let times = 0; times < 10; times += 1) {
      const failure = await pass(folder).catch((error: Error) => error.message);
      expect(failure).toContain("The DKIM key s1._domainkey.shop.example could not be looked up in DNS.");
      await app.advance(60_000);
    }
    keys[KEY] = { TXT: [KEY_RECORD] };
    expect(await pass(folder)).toBe("done");
    expect([rows(app).length, folder.log.at(-1)]).toEqual([1, "seen 1"]);
  });

  test("its mails do not hold up others for longer than an hour", async () => {
    const app = start();
    app.newKey({ mode: "live" });
    const keys: Zone = { "gone._domainkey.shop.example": "timeout", [KEY]: { TXT: [KEY_RECORD] } };
    const { pass } = openSync(app, { keys });
    const gone = deliveryReportMail({
      recipients: [failedRecipient(ANNA)],
      returned: signedMessageTo(ANNA).replace("s=s1", "s=gone"),
    });
    const folder = new FakeFolder().deliver(1, gone).deliver(2, bounceMailOf("bert@shop.example.com"));
    expect(pass(folder)).rejects.toThrow("could not be looked up");
    await app.advance(KEY_WAIT_MS);
    expect(await pass(folder)).toBe("done");
    expect(rows(app)).toMatchObject([{ email: "bert@shop.example.com" }]);
    expect(folder.log.at(-1)).toBe("seen 2");
  });
});

test("an outage that is over does not count for the next one", async () => {
  const app = start();
  app.newKey({ mode: "live" });
  const keys: Record<string, Zone[string]> = { [KEY]: "servfail" };
  const { pass } = openSync(app, { keys });
  const folder = new FakeFolder().deliver(1, bounceMailOf(ANNA));
  await expect(pass(folder)).rejects.toThrow("could not be looked up");
  await app.advance(KEY_WAIT_MS / 2);
  keys[KEY] = { TXT: [KEY_RECORD] };
  expect(await pass(folder)).toBe("done");
  await app.advance(KEY_WAIT_MS / 2);
  keys[KEY] = "servfail";
  await expect(pass(folder.deliver(2, bounceMailOf("bert@shop.example.com")))).rejects.toThrow(
    "could not be looked up",
  );
});

test("another outage of a key, hours after the last, has an hour of its own", async () => {
  const app = start();
  app.newKey({ mode: "live" });
  const { pass } = openSync(app, { keys: { [KEY]: "servfail" } });
  expect(pass(new FakeFolder().deliver(1, bounceMailOf(ANNA)))).rejects.toThrow("could not be looked up");
  await app.advance(3 * KEY_WAIT_MS);
  expect(pass(new FakeFolder().deliver(1, bounceMailOf(ANNA)))).rejects.toThrow("could not be looked up");
});

test("the next check of the address knows, unless the server proves the mailbox", async () => {
  const server = { knows: (_: string): boolean => true };
  const stub = startStub({ rcpt: (to) => (server.knows(to) ? "250 2.1.5 Ok" : "550 5.1.1 User unknown") });
  const app = start({ zone: ZONE, stub, settings: { GREYLIST_RETRIES_S: "60" } });
  const key = app.newKey({ mode: "live" });
  await openSync(app).pass(new FakeFolder().deliver(1, bounceMailOf(ANNA)));
  const { body, id } = await app.verify(key, ANNA);
  expect(body.result).toMatchObject({ sub_status: "mailbox_not_found" });
  const evidence = await app.request("GET", `/v1/email-verifications/${id}/evidence`, { key });
  expect(JSON.stringify(evidence.body.conclusion)).toContain("as a mail in the bounce mailbox reported");
  server.knows = (to) => to.startsWith("anna@");
  await app.advance(3 * 86_400_000);
  expect((await app.verify(key, ANNA)).body.result).toMatchObject({ sub_status: "mailbox_exists" });
  const listed = await app.request("GET", "/v1/bounces?source=mailbox", { key });
  expect(listed.body.bounces).toMatchObject([{ email: ANNA, refuted_at: expect.any(String) }]);
});
