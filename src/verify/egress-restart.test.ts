import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nextTurn } from "../foundation/base/clock.ts";
import { createApps } from "../testing/app.ts";
import { startSmtpStub } from "../testing/smtp-stub.ts";

const folder = mkdtempSync(join(tmpdir(), "egress-restart-"));
afterAll(() => rmSync(folder, { recursive: true }));
const start = createApps();

/** Greylists the first recipient of each client address, as postgrey does. */
const greylisting = () => {
  const seen = new Set<string>();
  return startSmtpStub({
    rcpt: (address, _nth, { remoteAddress }) => {
      if (address !== "ada@x.example") return "550 5.1.1 User unknown";
      const isKnown = seen.has(remoteAddress);
      seen.add(remoteAddress);
      return isKnown ? "250 2.1.5 Ok" : "450 4.2.0 Greylisted, please come back later";
    },
  });
};

test("a retry after greylisting uses the same egress, also in the next process", async () => {
  const stub = greylisting();
  const options = {
    zone: { "x.example": { MX: [[10, "mx.x.example"]] }, "mx.x.example": { A: [stub.hostname] } },
    stub,
    path: join(folder, "postwarden.db"),
    settings: { SOURCE_ADDRESSES: "127.0.0.5,127.0.0.6", GREYLIST_RETRIES_S: "60,60" },
  } as const;
  const before = start(options);
  const key = before.newKey({ mode: "live" });
  // Takes the turn of the first address: a new process would begin with that one.
  expect((await before.verify(key, "bob@x.example", "?timeout=60")).body).toMatchObject({ status: "completed" });
  const posted = before.verify(key, "ada@x.example", "?timeout=1");
  await stub.received("RCPT TO:<ada@");
  await before.advance(1_000);
  const { id, status } = await posted;
  expect(status).toBe(202);
  const target = `/v1/email-verifications/${id}`;
  const retries = async () => {
    const { text } = await before.request("GET", `${target}/evidence`, { key });
    return (JSON.parse(text) as { retries?: readonly unknown[] }).retries?.length ?? 0;
  };
  while ((await retries()) === 0) await nextTurn();

  const after = start(options);
  after.service.verification.runner.start();
  await after.advance(61_000);
  let body = (await after.request("GET", target, { key })).body;
  for (; body.status !== "completed"; body = (await after.request("GET", target, { key })).body) await nextTurn();
  expect(body).toMatchObject({ result: { sub_status: "mailbox_exists" } });
  const { text } = await after.request("GET", `${target}/evidence`, { key });
  expect([...text.matchAll(/"egress":"([^"]*)"/g)].map(([, egress]) => egress)).toEqual(["127.0.0.6", "127.0.0.6"]);
  stub.stop();
});
