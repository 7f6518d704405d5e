import type { FaultHost } from "./hosts.ts";

/** What is sent, and what happens then. Text is whole lines with newlines between them, without the last one. */
export interface Reply {
  readonly text?: string;
  /** Sent after the text, and no end of line behind it. */
  readonly fragment?: string;
  /** How long the server thinks before it speaks. */
  readonly afterMs?: number;
  /** Sent again and again after that, `everyMs` apart, until the client hangs up. */
  readonly flood?: string;
  readonly everyMs?: number;
  readonly ends?: "drop" | "reset";
}

/** An empty one says nothing. */
type Said = string | Reply;

/** What a host of the fault server does. */
export interface Script {
  /** The greeting; left out: the connection is taken and nothing is said. */
  readonly banner?: Said;
  /** The reply to each verb, or how it follows from the whole command, the `nth` of its verb. Verbs not named get 250, QUIT gets 221. */
  readonly replies?: Readonly<Record<string, Said | ((command: string, nth: number) => Said)>>;
  /** What every reply does unless it says otherwise. */
  readonly everyReply?: Reply;
  /** Time between two bytes of every reply. */
  readonly bytePauseMs?: number;
  /** True: no command is ever answered. */
  readonly deaf?: boolean;
}

export const GREETING = "220 fault.mx.lab.test ESMTP";
export const EHLO = "250-fault.mx.lab.test\n250-PIPELINING\n250 ENHANCEDSTATUSCODES";
const EHLO_TLS = `${EHLO.replace("250 ", "250-")}\n250 STARTTLS`;
const EHLO_UTF8 = `${EHLO.replace("250 ", "250-")}\n250-8BITMIME\n250 SMTPUTF8`;
const TLS_FIRST = "530 5.7.0 Must issue a STARTTLS command first";
const UNKNOWN = "550 5.1.1 No such user here";
const SLOW_RCPT_MS = 3000;
const TARPIT_MS = 2000;
const RECOVERS_AFTER = 2;

const TOO_BUSY: Script = { banner: { text: "421 4.7.0 Too many connections, try again later", ends: "drop" } };

const isAlice = (command: string): boolean => /<alice@/i.test(command);

/** The answer of a server that knows alice alone. */
export const onlyAlice = (command: string): string => (isAlice(command) ? "250 2.1.5 Ok" : UNKNOWN);

const answersRcpt = (rcpt: (command: string, nth: number) => Said): Script => ({
  banner: GREETING,
  replies: { EHLO, RCPT: rcpt },
});

const demandsTls = (starttls: Said): Script => ({
  banner: GREETING,
  replies: { EHLO: EHLO_TLS, STARTTLS: starttls, MAIL: TLS_FIRST, RCPT: TLS_FIRST },
});

/** Temporarily out of order for the first questions that it ever gets. */
const recovering = (): Script => {
  let asked = 0;
  return answersRcpt((command) => {
    asked += 1;
    return asked <= RECOVERS_AFTER ? "451 4.3.0 Mail server temporarily out of order" : onlyAlice(command);
  });
};

/** Greylists in the words of a policy, by its default or the operator's, until it has been asked often enough. */
const greylistingByPolicy = (): Script => {
  let asked = 0;
  return answersRcpt((command) => {
    asked += 1;
    return asked <= RECOVERS_AFTER ? "451 4.7.1 Recipient address rejected: local policy" : onlyAlice(command);
  });
};

/** Says that a mailbox is unknown with the code of a policy. */
const withPolicyCode = (isKnown: (command: string) => boolean): Script =>
  answersRcpt((command) => (isKnown(command) ? "250 2.1.5 Ok" : "550 5.7.1 No such user!"));

/** Greylists at MAIL, as some do, until it has been asked often enough. */
const greylistingMail = (): Script => {
  let asked = 0;
  const mail = (): Said => {
    asked += 1;
    return asked <= RECOVERS_AFTER ? "451 4.7.1 Greylisting in action, please come back later" : "250 2.1.0 Ok";
  };
  return { banner: GREETING, replies: { EHLO, MAIL: mail, RCPT: onlyAlice } };
};

/** What is said about one mailbox each; every other one but alice is unknown. */
const CODES: Readonly<Record<string, string>> = {
  moved: "551 5.1.6 The recipient has moved",
  retired: "525 5.7.13 User account disabled",
  stuffed: "552 Requested mail action aborted: exceeded storage allocation",
  guarded: "550 5.7.1 Message refused by local policy",
  denied: "550 5.4.1 Recipient address rejected: Access denied",
};

const codes = (command: string): string => CODES[/<([^@>]*)@/.exec(command)?.[1] ?? ""] ?? onlyAlice(command);

/** A latin1 reading of UTF-8: every octet is a character, and those above 127 are no ASCII. */
const isAscii = (command: string): boolean => !/[\u0080-\u00ff]/.test(command);

/** What no server of a distribution can be brought to do, and that honest ones in the field do. */
export const FAULTY: Readonly<Partial<Record<FaultHost, Script>>> = {
  nostarttls: { banner: GREETING, replies: { EHLO, MAIL: TLS_FIRST, RCPT: TLS_FIRST } },
  brokentls: demandsTls("220 2.0.0 Ready\nthis is not TLS"),
  tlscloses: demandsTls({ text: "220 2.0.0 Ready", ends: "drop" }),
  tlssilent: demandsTls("220 2.0.0 Ready"),
  tls454: demandsTls("454 4.7.0 TLS not available due to temporary reason"),
  tlsoptional: {
    banner: GREETING,
    replies: { EHLO: EHLO_TLS, STARTTLS: { text: "220 2.0.0 Ready\nthis is not TLS", ends: "drop" }, RCPT: onlyAlice },
  },
  busy: TOO_BUSY,
  busytoo: TOO_BUSY,
  shuts: { banner: { ends: "drop" }, deaf: true },
  noservice: { banner: "554 No SMTP service here", replies: { EHLO: "503 Bad sequence", HELO: "503 Bad sequence" } },
  turncoat: { banner: { text: `${GREETING.replace(" ", "-")}\n554 5.7.1 Go away`, ends: "drop" } },
  code556: answersRcpt(() => "556 5.1.10 Recipient address has null MX"),
  code252: answersRcpt((command) => (isAlice(command) ? "252 2.1.5 Cannot VRFY user, will try" : UNKNOWN)),
  mixed: answersRcpt((command) => (isAlice(command) ? "250 2.1.5 Ok" : `250-2.1.5 Looking\n${UNKNOWN}`)),
  shortreply: { banner: "220", replies: { EHLO: "250", RCPT: (command) => (isAlice(command) ? "250" : UNKNOWN) } },
  noehlo: { banner: "220 fault.mx.lab.test", replies: { EHLO: "502 Command not implemented", RCPT: onlyAlice } },
  onlyfirst: answersRcpt((command, nth) =>
    nth === 1 ? onlyAlice(command) : { text: "421 4.7.0 One recipient only, goodbye", ends: "drop" },
  ),
  hangsfirst: answersRcpt((command) => ({ text: onlyAlice(command), ends: "drop" })),
  allhangsfirst: answersRcpt(() => ({ text: "250 2.1.5 Ok", ends: "drop" })),
  policygrey: greylistingByPolicy(),
  policycode: withPolicyCode((command) => /<(?:alice|postmaster)@/i.test(command)),
  policyblind: withPolicyCode(() => false),
  cannotverify: answersRcpt((command) => (isAlice(command) ? "250 2.1.5 Ok" : "550 5.1.1 Unable to verify recipient")),
  tlsreset: demandsTls({ text: "220 2.0.0 Ready", ends: "reset" }),
  slow: { banner: GREETING, replies: { EHLO, RCPT: onlyAlice }, bytePauseMs: 8 },
  slowrcpt: answersRcpt((command) => ({ text: onlyAlice(command), afterMs: SLOW_RCPT_MS })),
  tarpit: { banner: GREETING, replies: { EHLO, RCPT: onlyAlice }, everyReply: { afterMs: TARPIT_MS } },
  recovers: recovering(),
  greymail: greylistingMail(),
  toomany: answersRcpt(() => "452 4.5.3 Too many recipients this hour"),
  codes: answersRcpt(codes),
  utf8refuses: {
    banner: GREETING,
    replies: {
      EHLO: EHLO_UTF8,
      RCPT: (command) => (isAscii(command) ? onlyAlice(command) : "553 5.6.7 Non-ASCII addresses are not permitted"),
    },
  },
  utf8mail: {
    banner: GREETING,
    replies: {
      EHLO: EHLO_UTF8,
      MAIL: (command) => (/SMTPUTF8/.test(command) ? "555 5.5.4 Unsupported option: SMTPUTF8" : "250 2.1.0 Ok"),
      RCPT: onlyAlice,
    },
  },
};
