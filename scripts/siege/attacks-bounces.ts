import { deliveryReportMail, failedRecipient } from "../../src/testing/bounce-mails.ts";
import { ImapStub } from "../../src/testing/imap-stub.ts";
import { ask, keyOf } from "./api.ts";
import { type Attack, type Finding, flood, pause, tallyOf } from "./attack.ts";

const PATH = "/v1/bounces";
const FLOOD_MS = 15_000;
const AT_ONCE = 30;
const EVENTS = 1_000;
const MIB = 1024 * 1024;
/** A reply that looks like another line of the log, with control characters and a formula. */
const HOSTILE = "550 5.1.1 =cmd|x\u001b[2J to=<victim@example.com>, dsn=5.1.1, status=bounced ".repeat(2);

const eventsOf = (n: number): string =>
  JSON.stringify(
    Array.from({ length: EVENTS }, (_, at) => ({
      ...{ event: "bounce", type: "bounce", email: `u${at}@b${n % 100}.example`, timestamp: 1_767_225_600 },
      ...{ sg_event_id: `${n}-${at}`, status: "5.1.1" },
    })),
  );

const lineOf = (n: number, at: number): string =>
  `2026-01-01T00:00:00+00:00 mx postfix/smtp[1]: Q${n}x${at}: to=<u${at}@b.example>, relay=mx.b.example[192.0.2.1]:25, delay=1, delays=0/0/0/1, dsn=5.1.1, status=bounced (${HOSTILE})`;

const linesOf = (n: number): string => Array.from({ length: 1_000 }, (_, at) => lineOf(n, at)).join("\n");

const bounces: Attack = {
  name: "bounces",
  about: `${AT_ONCE} requests at once report up to ${EVENTS} bounces each, with hostile replies, deep JSON and 3 MiB`,
  isQuick: true,
  seconds: 40,
  prepare: async (context) => async (): Promise<readonly Finding[]> => {
    const statuses: number[] = [];
    await flood(context, { atOnce: AT_ONCE, forMs: FLOOD_MS }, async (n) => {
      const key = keyOf(context.keys.attacker.live, n);
      const bodies = [
        () => ({ body: eventsOf(n) }),
        () => ({ body: linesOf(n), type: "text/plain" }),
        () => ({ body: "[".repeat(MIB - 1) }),
        () => ({ body: "x\n".repeat(MIB), type: "text/plain" }),
        () => ({ body: "x".repeat(3 * MIB) }),
      ];
      const made = bodies[n % bodies.length]?.() ?? { body: "" };
      statuses.push((await ask(context, PATH, { key, ...made })).status);
    });
    return [{ what: "reports of bounces", value: statuses.length, unit: "", note: tallyOf(statuses) }];
  },
};

const MAILS = 300;
const MAILBOX_MS = 20_000;
const RECIPIENTS = 100;

/** Reports of every bad kind: many recipients, a returned message of megabytes, ten signatures, parts in parts, half a report. */
const hostileMail = (n: number): string => {
  const recipients = Array.from({ length: RECIPIENTS }, (_, at) =>
    failedRecipient(`u${n}x${at}@b.example`, { diagnostic: `smtp; ${HOSTILE}` }),
  );
  const signatures =
    "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=b.example; s=x; h=From:To; bh=AA==; b=AA==\r\n";
  const shapes = [
    () => deliveryReportMail({ recipients, returned: `${signatures.repeat(10)}To: u@b.example\r\n\r\nx\r\n` }),
    () => deliveryReportMail({ recipients, returned: `To: u@b.example\r\n\r\n${"x".repeat(70)}\r\n`.repeat(20_000) }),
    () => deliveryReportMail({ recipients: recipients.flatMap((one) => [one, one]), returned: null }),
    () =>
      `Content-Type: multipart/report; boundary=a\r\n\r\n${"--a\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n".repeat(2_000)}`,
    () => deliveryReportMail({ recipients, returned: null }).slice(0, 2_000),
  ];
  return (shapes[n % shapes.length] ?? (() => ""))();
};

/** The folder of the attack that is running. */
const mailbox: { server: ImapStub | null } = { server: null };

const bounceMails: Attack = {
  name: "bounce-mails",
  about: `the bounce mailbox has ${MAILS} hostile reports, of up to ${RECIPIENTS} recipients and 2 MB, and all are believed`,
  isQuick: true,
  seconds: 40,
  open: () => {
    const server = new ImapStub({});
    mailbox.server = server;
    const settings = {
      POSTWARDEN_BOUNCE_IMAP_URL: `imap://user:secret@127.0.0.1:${server.port}/INBOX`,
      POSTWARDEN_BOUNCE_IMAP_ACCOUNT: "attacker",
      POSTWARDEN_BOUNCE_IMAP_SIGNED_BY: "anyone",
    };
    const count = () => server.messages.filter(({ flags }) => flags.includes("Seen")).length;
    return { settings, close: () => server.stop(), count };
  },
  prepare: async (context) => async (): Promise<readonly Finding[]> => {
    for (let n = 0; n < MAILS; n += 1) mailbox.server?.deliver(hostileMail(n));
    await pause(context, MAILBOX_MS);
    const seen = context.countOfServer();
    return [{ what: "reports in the mailbox", value: MAILS, unit: "", note: `${seen} are read and flagged so far` }];
  },
};

/** Attacks on what is reported about outgoing mail. */
export const bounceAttacks: readonly Attack[] = [bounces, bounceMails];
