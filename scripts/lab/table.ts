import { SUFFIX } from "./hosts.ts";
import { DISPOSABLE_DOMAIN } from "./zone.ts";

type Verdict = "deliverable" | "risky" | "undeliverable";

/** An address of the lab, what is true of it, and what the binary must therefore answer. */
export interface Row {
  readonly address: string;
  readonly truth: string;
  readonly verdict: Verdict;
  readonly subStatus: string;
}

/** Truth, verdict and sub_status, then the addresses: `@name` stands for `@name.lab.test`, a final dot for a full name. */
type Group = readonly [truth: string, verdict: Verdict, subStatus: string, ...addresses: string[]];

const POSTFIX: readonly Group[] = [
  [
    "exists",
    "deliverable",
    "mailbox_exists",
    "alice@exists",
    "bob.builder@exists",
    "carol@exists",
    "o'neil@exists",
    "x@exists",
  ],
  ["exists, written with capitals", "deliverable", "mailbox_exists", "ALICE@Exists"],
  ["exists, with a tag", "deliverable", "mailbox_exists", "alice+news@exists"],
  ["exists, quoted local part", "deliverable", "mailbox_exists", '"john..smith"@exists', '"alice"@exists'],
  ["unknown", "undeliverable", "mailbox_not_found", "nobody@exists", "alicf@exists", '"alice smith"@exists'],
  ["unknown, and its text contains 250", "undeliverable", "mailbox_not_found", "250-ok@exists"],
  ["disabled", "undeliverable", "mailbox_disabled", "gone@exists", "suspended@exists"],
  ["full", "risky", "mailbox_full", "stuffed@full", "brimful@full"],
  ["exists, beside full ones", "deliverable", "mailbox_exists", "roomy@full"],
  ["catch-all domain", "risky", "catch_all", "anybody@catchall", "info@catchall"],
  ["role account that exists", "risky", "role_account", "info@exists"],
  ["role account that does not exist", "undeliverable", "mailbox_not_found", "sales@exists"],
  ["disposable domain, exists", "risky", "disposable", `alice@${DISPOSABLE_DOMAIN}.`],
  ["disposable domain, unknown", "undeliverable", "mailbox_not_found", `nobody@${DISPOSABLE_DOMAIN}.`],
  ["greylisted, then accepted", "deliverable", "mailbox_exists", "alice@grey"],
  ["greylisted, then unknown", "undeliverable", "mailbox_not_found", "nobody@grey"],
  ["greylisted for an hour", "risky", "greylisted", "alice@greylong"],
  ["we are blocked, told at RCPT", "risky", "smtp_blocked", "alice@blocked", "nobody@blocked"],
  ["we are blocked, told at connect", "risky", "smtp_blocked", "alice@blockedatconnect"],
  ["our HELO is refused", "risky", "smtp_blocked", "alice@helo"],
  ["its server relays nothing for it", "risky", "smtp_blocked", "alice@relaydenied"],
  ["temporary failure", "risky", "smtp_temporary_error", "alice@tempfail"],
  ["unknown, told as 450 for ever", "risky", "smtp_temporary_error", "nobody@soft"],
  ["exists, unknown ones get 450", "deliverable", "mailbox_exists", "alice@soft"],
  ["our sender is refused at MAIL", "risky", "sender_rejected", "alice@sender"],
  ["our sender is refused at RCPT", "risky", "sender_rejected", "alice@senderatrcpt"],
  ["too many connections (421)", "risky", "rate_limited", "alice@rate"],
  ["too many recipients (450)", "risky", "rate_limited", "alice@recipientrate"],
  ["exists, one recipient a mail", "deliverable", "mailbox_exists", "alice@onercpt"],
  ["unknown, one recipient a mail", "undeliverable", "mailbox_not_found", "nobody@onercpt"],
  ["TLS demanded, exists", "deliverable", "mailbox_exists", "alice@tls"],
  ["TLS demanded, unknown", "undeliverable", "mailbox_not_found", "nobody@tls"],
  ["SMTPUTF8, exists", "deliverable", "mailbox_exists", "jürgen@utf8", "用户@utf8"],
  ["SMTPUTF8, unknown", "undeliverable", "mailbox_not_found", "jürgenx@utf8"],
  ["local part needs SMTPUTF8, server has none", "undeliverable", "smtputf8_unsupported", "jürgen@noutf8"],
  ["server without SMTPUTF8, exists", "deliverable", "mailbox_exists", "alice@noutf8"],
  ["IDN domain, exists", "deliverable", "mailbox_exists", "alice@bücher", "alice@xn--bcher-kva", "alice@BÜCHER"],
  ["IDN domain, unknown", "undeliverable", "mailbox_not_found", "nobody@bücher"],
];

const EXIM: readonly Group[] = [
  ["Exim, exists", "deliverable", "mailbox_exists", "alice@exim"],
  ["Exim, unknown", "undeliverable", "mailbox_not_found", "nobody@exim", "nobody@eximworded"],
  ["Exim, disabled", "undeliverable", "mailbox_disabled", "gone@exim"],
  ["Exim, full", "risky", "mailbox_full", "stuffed@exim", "overquota@exim"],
  ["Exim, catch-all", "risky", "catch_all", "anybody@eximcatchall"],
  ["Exim, router defers", "risky", "smtp_temporary_error", "alice@eximdefers"],
];

const SEVERAL_HOSTS: readonly Group[] = [
  ["first host refuses connections, exists", "deliverable", "mailbox_exists", "alice@failover"],
  ["first host refuses connections, unknown", "undeliverable", "mailbox_not_found", "nobody@failover"],
  ["first host is silent, exists", "deliverable", "mailbox_exists", "alice@failoversilent"],
  ["first host says 421, exists", "deliverable", "mailbox_exists", "alice@failoverbusy"],
  ["first host hangs up, exists", "deliverable", "mailbox_exists", "alice@failovershuts"],
  ["accept-all secondary, exists", "deliverable", "mailbox_exists", "alice@secondary"],
  ["accept-all secondary, unknown", "undeliverable", "mailbox_not_found", "nobody@secondary"],
  ["accept-all secondary, primary defers", "risky", "smtp_temporary_error", "alice@secondarydefers"],
  ["all hosts are dead", "risky", "smtp_unreachable", "alice@dead"],
];

const DNS_SHAPES: readonly Group[] = [
  ["null MX", "undeliverable", "null_mx", "alice@nullmx"],
  ["implicit MX, exists", "deliverable", "mailbox_exists", "alice@implicit"],
  ["implicit MX, unknown", "undeliverable", "mailbox_not_found", "nobody@implicit"],
  ["no MX, no address", "undeliverable", "no_mail_server", "alice@txtonly"],
  ["no such domain", "undeliverable", "domain_not_found", "alice@nosuchdomain"],
  ["SERVFAIL", "risky", "dns_error", "alice@servfail"],
  ["silent DNS", "risky", "dns_error", "alice@silentdns"],
  ["DNS REFUSED", "risky", "dns_error", "alice@refused"],
  ["MX at a private address", "undeliverable", "unroutable_mx", "alice@privatemx"],
  ["first MX private, second works", "deliverable", "mailbox_exists", "alice@privatefirst"],
  ["MX host does not exist", "undeliverable", "unroutable_mx", "alice@nohost"],
  ["MX host has no address", "undeliverable", "unroutable_mx", "alice@addressless"],
  ["MX host ends in SERVFAIL", "risky", "dns_error", "alice@hostservfail"],
  ["MX is a CNAME, exists", "deliverable", "mailbox_exists", "alice@mxcname"],
  ["domain is a CNAME, exists", "deliverable", "mailbox_exists", "alice@domaincname"],
];

const FAULTS: readonly Group[] = [
  ["server never speaks", "risky", "smtp_timeout", "alice@silent"],
  ["TLS demanded, none offered", "risky", "tls_required", "alice@nostarttls"],
  ["TLS demanded, handshake is broken", "risky", "tls_required", "alice@brokentls"],
  ["421 at connect", "risky", "rate_limited", "alice@busy"],
  ["server hangs up at RCPT", "risky", "smtp_protocol_error", "alice@drops"],
  ["an HTTP server", "risky", "smtp_protocol_error", "alice@garbage"],
  ["556 at RCPT", "undeliverable", "null_mx", "alice@code556"],
  ["server knows only HELO, exists", "deliverable", "mailbox_exists", "alice@noehlo"],
  ["server knows only HELO, unknown", "undeliverable", "mailbox_not_found", "nobody@noehlo"],
  ["server speaks byte by byte, exists", "deliverable", "mailbox_exists", "alice@slow"],
];

const SYNTAX: readonly Group[] = [
  [
    "not an address",
    "undeliverable",
    "invalid_syntax",
    "alice",
    "alice..b@exists",
    ".alice@exists",
    "alice@",
    "@exists",
  ],
  [
    "not an address",
    "undeliverable",
    "invalid_syntax",
    "a b@exists",
    "alice@exists@exists",
    "alice@-exists",
    "alice@exi sts",
  ],
  ["local part of 65 octets", "undeliverable", "invalid_syntax", `${"a".repeat(65)}@exists`],
];

const qualify = (address: string): string => {
  if (address.endsWith(".")) return address.slice(0, -1);
  return /@./.test(address) ? `${address}.${SUFFIX}` : address;
};

/** The table of addresses. It grows by lines above; nothing else has to know of a new one. */
export const ROWS: readonly Row[] = [
  ...POSTFIX,
  ...EXIM,
  ...SEVERAL_HOSTS,
  ...DNS_SHAPES,
  ...FAULTS,
  ...SYNTAX,
].flatMap(([truth, verdict, subStatus, ...addresses]) =>
  addresses.map((address) => ({ address: qualify(address), truth, verdict, subStatus })),
);
