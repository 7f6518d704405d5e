/** The mail hosts of the dashboard's world: one for each way in which mail hosts reply. */
import {
  NO_REPLY,
  type SmtpStub,
  type SmtpStubScript,
  type StubAnswer,
  type StubSession,
  startSmtpStub,
} from "../../src/testing/smtp-stub.ts";
import type { NameRecords } from "../harness/world.ts";
import { HOSTILE } from "./hostile.ts";

const SLOW_MS = 1_500;

/** What a host says of a recipient: those whose local part begins with one of these words do not exist, are full, and so on. */
const judge = (address: string): string => {
  const [local = ""] = address.split("@");
  if (/^(nobody|old|test\d|formerly|unknown)/.test(local)) {
    return `550 5.1.1 <${address}>: Recipient address rejected: User unknown in virtual mailbox table`;
  }
  if (local.startsWith("full")) return `552 5.2.2 <${address}>: Mailbox full, over quota`;
  if (local.startsWith("gone")) return `550 5.2.1 <${address}>: The email account that you tried to reach is disabled`;
  return isGuess(local) ? `550 5.1.1 <${address}>: Recipient address rejected: User unknown` : "250 2.1.5 Ok";
};

/** The prober's random recipients end in five digits. */
const isGuess = (local: string): boolean => /\d{4,}$/.test(local);

const greylist = (): ((address: string) => string) => {
  const seen = new Set<string>();
  return (address) => {
    if (seen.has(address)) return judge(address);
    seen.add(address);
    return "450 4.2.0 Greylisted, see https://postgrey.example/help";
  };
};

const mxOf = (domain: string): string => `mx.${domain}`;

interface MailHost {
  readonly domains: readonly string[];
  readonly script: SmtpStubScript;
}

/** Ordinary domains with one host each; the addresses of 127.30.0.0/16 are given in this order. */
const HOSTS: readonly MailHost[] = [
  ...[
    "hotelmar-lab.com",
    "nordlicht.example",
    "ticketo-lab.com",
    "libreria-lab.com",
    "acme-lab.com",
    "bakkerij.example",
  ].map((domain) => ({ domains: [domain], script: { rcpt: judge } })),
  { domains: ["gmail.com", "kaffeewerk-lab.com"], script: { rcpt: judge } },
  { domains: ["outlook.example", "mailinator.com", "spamtraps.example"], script: { rcpt: judge, starttls: "works" } },
  { domains: ["everybody.example"], script: { rcpt: () => "250 2.1.5 Ok" } },
  { domains: ["greylist.example"], script: { rcpt: greylist() } },
  { domains: ["patience.example"], script: { rcpt: () => "450 4.2.0 Greylisted, please try again later" } },
  {
    domains: ["blocks.example"],
    script: { rcpt: () => "554 5.7.1 Service unavailable; Client host [203.0.113.20] blocked using zen.spamhaus.org" },
  },
  {
    domains: ["sender.example"],
    script: { mail: () => "550 5.7.1 Sender address rejected: empty sender not allowed here" },
  },
  { domains: ["busy.example"], script: { rcpt: () => "451 4.7.1 Too many connections from your address, slow down" } },
  { domains: ["fault.example"], script: { rcpt: () => "451 4.3.0 Temporary lookup failure" } },
  { domains: ["silent.example"], script: { banner: () => NO_REPLY } },
  {
    domains: ["nonsense.example"],
    script: { banner: () => ({ raw: "HTTP/1.1 400 Bad Request\r\n\r\n", ending: "close" }) },
  },
  { domains: ["tls.example"], script: { mail: () => "530 5.7.0 Must issue a STARTTLS command first" } },
  { domains: ["ascii.example"], script: { ehlo: ["PIPELINING"], rcpt: judge } },
  {
    domains: ["hostile.example"],
    script: {
      banner: () => `220 mx.hostile.example ${HOSTILE.script}`,
      rcpt: (address) => `550 5.1.1 <${address}>: User unknown ${HOSTILE.attribute} ${HOSTILE.end}`,
    },
  },
  {
    domains: ["slow.example"],
    script: {
      rcpt: async (address) => {
        await Bun.sleep(SLOW_MS);
        return judge(address);
      },
    },
  },
];

const addressAt = (at: number): string => `127.30.${at >> 8}.${(at & 255) + 1}`;

/** Names without a working mail host. */
const WITHOUT_HOST: Readonly<Record<string, NameRecords>> = {
  "nullmx.example": { MX: [[0, "."]] },
  "web-only.example": { TXT: ["v=spf1 -all"] },
  "private.example": { MX: [[10, "mx.private.example"]] },
  "mx.private.example": { A: ["10.1.2.3"] },
  "broken-dns.example": { fails: true },
};

/** Everything said in a session that delivers mail: DATA is accepted, and the message kept. */
const acceptData = (messages: string[]): NonNullable<SmtpStubScript["command"]> => {
  const open = new Map<StubSession, string[]>();
  return (line, session): StubAnswer | undefined => {
    const message = open.get(session);
    if (message === undefined) {
      if (line.toUpperCase() !== "DATA") return undefined;
      open.set(session, []);
      return "354 End data with <CR><LF>.<CR><LF>";
    }
    if (line !== ".") {
      message.push(line);
      return NO_REPLY;
    }
    open.delete(session);
    messages.push(message.join("\n"));
    return "250 2.0.0 Ok: queued";
  };
};

/** The hosts on loopback, all on one port, and a relay that takes the mail of the service. */
export class MailHosts {
  readonly #stubs: SmtpStub[] = [];
  readonly #relay: SmtpStub;
  /** The mails that the service sent, with their headers. */
  readonly messages: string[] = [];

  constructor() {
    for (const [at, { script }] of HOSTS.entries()) {
      const port = this.#stubs[0]?.port ?? 0;
      this.#stubs.push(startSmtpStub({ ...script, hostname: addressAt(at), port }));
    }
    this.#relay = startSmtpStub({ command: acceptData(this.messages) });
  }

  get port(): number {
    return this.#stubs[0]?.port ?? 0;
  }

  /** For POSTWARDEN_NOTIFY_SMTP_URL. */
  get relayUrl(): string {
    return `smtp://127.0.0.1:${this.#relay.port}`;
  }

  /** The records by which the hosts are found. */
  records(): Readonly<Record<string, NameRecords>> {
    const entries = HOSTS.flatMap(({ domains }, at) =>
      domains.flatMap((domain): Array<[string, NameRecords]> => [
        [domain, { MX: [[10, mxOf(domain)]] }],
        [mxOf(domain), { A: [addressAt(at)] }],
      ]),
    );
    return { ...Object.fromEntries(entries), ...WITHOUT_HOST };
  }

  stop(): void {
    for (const stub of [...this.#stubs, this.#relay]) stub.stop();
  }
}
