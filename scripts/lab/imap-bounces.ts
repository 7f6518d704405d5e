/** Bounces: a real Postfix sends to a real server that refuses the recipient, and delivers its report to the mailbox of Dovecot. */
import { join } from "node:path";
import { z } from "zod";
import { deliveryReportMail, failedRecipient } from "../../src/testing/bounce-mails.ts";
import { signHeader } from "../../src/testing/signed-message.ts";
import { type Claim, claim } from "./claims.ts";
import { openTalk } from "./dmarc-smtp.ts";
import { addressOf, BOUNCER, SMTP_PORT, SUFFIX } from "./hosts.ts";
import { MAIL_OWNER } from "./imap-dovecot.ts";
import { serverDirectory, withLabResolver } from "./namespace.ts";
import { mainCfHead, startInstance } from "./postfix.ts";
import type { Supervisor } from "./processes.ts";

/** The domain that signs. */
export const BOUNCE_SIGNER = `out.${SUFFIX}`;
const BACK = `back.${SUFFIX}`;
/** The user of Dovecot to whom everything at `BACK` is delivered. */
export const BOUNCE_USER = "bounced";
const MISSING = `nobody@exists.${SUFFIX}`;
const MISSING_UNSIGNED = `noone@exists.${SUFFIX}`;
const VICTIM = `alice@exists.${SUFFIX}`;

const mainCf = (directory: string, mailboxes: string): string => `${mainCfHead(directory)}myhostname = ${BOUNCE_SIGNER}
mydestination =
mynetworks = 127.0.0.0/8
alias_maps =
local_recipient_maps =
inet_protocols = ipv4
smtpd_peername_lookup = no
smtpd_relay_restrictions = permit_mynetworks, reject
default_transport = smtp:[${addressOf("main")}]:${SMTP_PORT}
virtual_mailbox_domains = ${BACK}
virtual_alias_domains =
virtual_alias_maps =
virtual_mailbox_base = ${mailboxes}
virtual_mailbox_maps = static:${BOUNCE_USER}/
virtual_uid_maps = static:${MAIL_OWNER.uid}
virtual_gid_maps = static:${MAIL_OWNER.gid}
virtual_minimum_uid = 1
`;

const MASTER_CF = `${BOUNCER}:${SMTP_PORT} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
`;

const startPostfix = async (supervisor: Supervisor, parent: string, mailboxes: string): Promise<void> => {
  const name = "postfix-bouncer";
  const directory = await serverDirectory(parent, name, ["queue", "data"]);
  await Bun.write(join(directory, "main.cf"), mainCf(directory, mailboxes));
  await Bun.write(join(directory, "master.cf"), MASTER_CF);
  await startInstance(supervisor, { name, directory, files: await withLabResolver(directory) });
  await supervisor.waitForPort(name, BOUNCER, SMTP_PORT);
};

const fieldsTo = (to: string) =>
  [
    ["From", `Shop <news@${BOUNCE_SIGNER}>`],
    ["To", to],
    ["Subject", "Your order"],
  ] as const;

/** Sends a message with the envelope sender of the mailbox; the last reply of the server. */
const send = async (to: string, isSigned: boolean): Promise<string> => {
  const talk = await openTalk({ ip: BOUNCER, port: SMTP_PORT });
  const signed = signHeader(fieldsTo(to), { d: BOUNCE_SIGNER });
  const header = isSigned ? signed : signed.slice(signed.indexOf("From:"));
  try {
    await talk.read();
    for (const line of [`EHLO ${BOUNCE_SIGNER}`, `MAIL FROM:<bounces@${BACK}>`, `RCPT TO:<${to}>`, "DATA"])
      await talk.say(line);
    return (await talk.say(`${header}\r\nHello\r\n.`)).text;
  } finally {
    talk.end();
  }
};

const Bounces = z.object({
  bounces: z.array(z.object({ email: z.string(), kind: z.string(), status: z.string(), source: z.string() })),
});

interface BouncePlace {
  readonly supervisor: Supervisor;
  /** The lab's directory, and that of Dovecot's mailboxes. */
  readonly directory: string;
  readonly mailboxes: string;
  readonly deliver: (mails: readonly Uint8Array[]) => Promise<void>;
  readonly flags: () => Promise<readonly string[]>;
  readonly until: (isSo: () => Promise<boolean>) => Promise<boolean>;
  /** `GET /v1/bounces` of the service that reads the mailbox. */
  readonly list: () => Promise<unknown>;
}

/** Two messages bounce, one of them without a signature; a third report is a forgery. */
export const runBounces = async (place: BouncePlace): Promise<readonly Claim[]> => {
  const { supervisor, until, flags } = place;
  await startPostfix(supervisor, place.directory, place.mailboxes);
  const accepted = [await send(MISSING, true), await send(MISSING_UNSIGNED, false)];
  const forged = deliveryReportMail({
    recipients: [failedRecipient(VICTIM)],
    returned: `${signHeader(fieldsTo("mallory@evil.example"), { d: BOUNCE_SIGNER }).replace("mallory@evil.example", VICTIM)}\r\n`,
  });
  await place.deliver([Buffer.from(forged)]);
  const listed = async () => Bounces.parse(await place.list()).bounces.map((one) => Object.values(one).join(" "));
  await until(async () => (await listed()).length > 0 && (await flags()).length === 3);
  await until(async () => (await flags()).some((some) => some.includes("S")));
  const seen = (await flags()).toSorted().join(",");
  return [
    claim(
      "imap",
      "Postfix accepts both messages",
      "yes",
      accepted.every((text) => text.startsWith("250")) ? "yes" : accepted.join(),
    ),
    claim(
      "imap",
      "the bounce of the signed one is stored, nothing else",
      `${MISSING} hard 5.1.1 mailbox`,
      (await listed()).join(),
    ),
    claim("imap", "its report is flagged, the other two are not", ",,S", seen),
  ];
};
