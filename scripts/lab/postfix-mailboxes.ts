import { PROBE_DOMAIN, SUFFIX } from "./hosts.ts";
import { POSTSCREEN, SMTPD } from "./postfix-listeners.ts";
import { DISPOSABLE, DISPOSABLE_DOMAIN, IDN_DOMAIN } from "./zone.ts";

const KNOWN = ["alice"];
const EVERYBODY = ["@"];

/** Domains that have only alice: one for each listener, and those that several listeners serve. */
const WITH_ALICE = [
  ...Object.keys(SMTPD),
  ...Object.keys(POSTSCREEN),
  ...[
    "failover",
    "failoversilent",
    "failoverbusy",
    "failovershuts",
    "equals",
    "thirty",
    "firstservfail",
    "firstnohost",
    "lastsilent",
  ],
  ...["secondary", "secondarydefers", "secondarygrey", "secondarydead", "implicit", "privatefirst"],
  ...["mxcname", "domaincname", "cnamechain", "truncated", "longtxt", "dualdead6", "dualdead4", "only6", "implicit6"],
  ...["twoaddresses", `any.wild.${SUFFIX}`, `mail.renamed.${SUFFIX}`],
];

/** The domains whose mailboxes Postfix knows, and the local parts of each; `@` alone takes every one. */
const MAILBOXES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(WITH_ALICE.map((domain) => [domain, KNOWN])),
  exists: ["alice", "bob.builder", "carol", "info", "o'neil", "john..smith", "x"],
  full: ["stuffed", "brimful", "roomy"],
  catchall: EVERYBODY,
  acceptall: EVERYBODY,
  datareject: EVERYBODY,
  greyall: EVERYBODY,
  oneall: EVERYBODY,
  exitall: EVERYBODY,
  tlsall: EVERYBODY,
  [DISPOSABLE.catchAll]: EVERYBODY,
  [DISPOSABLE_DOMAIN]: ["alice", "info"],
  grey: ["alice", "jürgen"],
  tls: ["alice", "jürgen"],
  utf8: ["alice", "jürgen", "用户"],
  [IDN_DOMAIN]: ["alice", "jürgen"],
  [IDN_DOMAIN.replace("xn--bcher-kva", "bücher")]: ["alice", "jürgen"],
  [PROBE_DOMAIN]: ["probe", "service"],
};

/** Answers that Postfix gives from its access table instead of looking at the mailbox. */
const ACCESS: Readonly<Record<string, string>> = {
  [`gone@exists.${SUFFIX}`]: "550 5.2.1 The email account that you tried to reach is disabled",
  [`suspended@exists.${SUFFIX}`]: "554 5.2.1 Account suspended, contact your provider",
  [`stuffed@full.${SUFFIX}`]: "452 4.2.2 Mailbox full",
  [`info@full.${SUFFIX}`]: "552 5.2.2 The recipient's mailbox is over quota",
  [`brimful@full.${SUFFIX}`]: "552 5.2.2 The recipient's mailbox is over quota",
};

const qualified = (domain: string): string => (domain.includes(".") ? domain : `${domain}.${SUFFIX}`);

/** The table of domains, as `texthash` reads it. */
export const domainLines = (): string =>
  Object.keys(MAILBOXES)
    .map((domain) => `${qualified(domain)} lab\n`)
    .join("");

/** The table of mailboxes. */
export const mailboxLines = (): string =>
  Object.entries(MAILBOXES)
    .flatMap(([domain, localParts]) =>
      localParts.map((localPart) => {
        const address = localPart === "@" ? `@${qualified(domain)}` : `${localPart}@${qualified(domain)}`;
        return `${address} lab/\n`;
      }),
    )
    .join("");

/** The access table. */
export const accessLines = (): string =>
  Object.entries(ACCESS)
    .map(([address, answer]) => `${address} ${answer}\n`)
    .join("");
