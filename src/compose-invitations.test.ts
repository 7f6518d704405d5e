import { expect, test } from "bun:test";
import { createLog } from "./base/log.ts";
import { composeInvitations } from "./compose-invitations.ts";
import { readConfig } from "./config.ts";
import { createTestClock } from "./testing/clock.ts";
import { NO_REPLY, startSmtpStub } from "./testing/smtp-stub.ts";

const INVITATION = {
  ...{ email: "bob@example.com", account: "acme", path: "/setup/TOKEN", expiresAtMs: Date.UTC(2026, 10, 29, 21, 30) },
};

const compose = (settings: Readonly<Record<string, string>>) => {
  const config = readConfig(settings);
  if (!config.ok) throw new Error(config.error.join("\n"));
  const logged: string[] = [];
  const log = createLog("debug", createTestClock(), (line) => logged.push(line));
  return { logged, mail: composeInvitations(config.value, log) };
};

const withRelay = (port: number, more: Readonly<Record<string, string>> = {}) =>
  compose({
    POSTWARDEN_BASE_URL: "https://mail.example.com",
    POSTWARDEN_NOTIFY_SMTP_URL: `smtp://127.0.0.1:${port}`,
    POSTWARDEN_NOTIFY_FROM: "postwarden@example.com",
    ...more,
  });

test("without a relay no link is mailed", () => {
  expect(compose({}).mail).toBeNull();
});

test("the link is mailed under the base URL, with its account and its end", async () => {
  let isContent = false;
  const stub = startSmtpStub({
    command(line) {
      const wasContent = isContent;
      isContent = line === "DATA" || (isContent && line !== ".");
      if (wasContent) return isContent ? NO_REPLY : "250 2.0.0 Ok";
      return isContent ? "354 End data with <CR><LF>.<CR><LF>" : undefined;
    },
  });
  const { mail, logged } = withRelay(stub.port);
  expect(await mail?.(INVITATION)).toBe(true);
  stub.stop();
  const sent = (stub.sessions[0]?.lines ?? []).join("\n").replaceAll("=\n", "");
  expect(sent).toContain("RCPT TO:<bob@example.com>");
  expect(sent).toContain("Subject: Your sign-in to acme on Postwarden");
  expect(sent).toContain("https://mail.example.com/setup/TOKEN");
  expect(sent).toContain("until 2026-11-29 21:30 UTC");
  expect(logged).toEqual([]);
});

test("a relay that refuses is logged, without the link", async () => {
  const stub = startSmtpStub({ rcpt: () => "550 5.1.1 User unknown" });
  const { mail, logged } = withRelay(stub.port);
  expect(await mail?.(INVITATION)).toBe(false);
  stub.stop();
  expect(logged).toHaveLength(1);
  expect(logged[0]).toContain("one-time link not mailed");
  expect(logged[0]).not.toContain("TOKEN");
});

test("recipients outside the allowed domains get none", async () => {
  const { mail } = withRelay(9, { POSTWARDEN_NOTIFY_DOMAINS: "other.example" });
  expect(await mail?.(INVITATION)).toBe(false);
});
