import { ALL_RETRIES_S, COMES_BACK_S, PROMPT_S, REPLY_TIMEOUT_S, within } from "./rows.ts";
import type { Theme } from "./rows.ts";
import { DISPOSABLE, DISPOSABLE_DOMAIN } from "./zone.ts";

const EXISTS = ["deliverable", "mailbox_exists"] as const;
const UNKNOWN = ["undeliverable", "mailbox_not_found"] as const;
const BLOCKED = ["risky", "smtp_blocked"] as const;
const LIMITED = ["risky", "rate_limited"] as const;
const REFUSED_SENDER = ["risky", "sender_rejected"] as const;
const DEFERRED = ["risky", "smtp_temporary_error"] as const;
const CATCH_ALL = ["risky", "catch_all"] as const;

export const MAILBOXES: Theme = {
  name: "Postfix mailboxes",
  spans: [
    within(
      PROMPT_S,
      ["exists", ...EXISTS, "alice@exists", "bob.builder@exists", "carol@exists", "o'neil@exists", "x@exists"],
      ["exists, written with capitals", ...EXISTS, "ALICE@Exists"],
      ["exists, with a tag", ...EXISTS, "alice+news@exists"],
      ["exists, quoted local part", ...EXISTS, '"john..smith"@exists', '"alice"@exists'],
      ["unknown", ...UNKNOWN, "nobody@exists", "alicf@exists", '"alice smith"@exists'],
      ["unknown, and its text contains 250", ...UNKNOWN, "250-ok@exists"],
      ["disabled", "undeliverable", "mailbox_disabled", "gone@exists", "suspended@exists"],
      ["full", "risky", "mailbox_full", "brimful@full"],
      ["exists, beside full ones", ...EXISTS, "roomy@full"],
      ["catch-all domain", ...CATCH_ALL, "anybody@catchall", "info@catchall"],
      ["refuses everything, but only after DATA", ...CATCH_ALL, "alice@datareject"],
      ["role account that exists", "risky", "role_account", "info@exists"],
      ["role account that does not exist", ...UNKNOWN, "sales@exists"],
      ["disposable domain, exists", "risky", "disposable", `alice@${DISPOSABLE_DOMAIN}.`],
      ["disposable domain, unknown", ...UNKNOWN, `nobody@${DISPOSABLE_DOMAIN}.`],
      ["exists, unknown ones get 450", ...EXISTS, "alice@soft"],
    ),
    within(
      ALL_RETRIES_S,
      ["full for the time being", "risky", "mailbox_full", "stuffed@full"],
      ["temporary failure", ...DEFERRED, "alice@tempfail"],
      ["its disk is full (452 4.3.1)", ...DEFERRED, "alice@storage"],
      ["unknown, told as 450 for ever", ...DEFERRED, "nobody@soft"],
    ),
  ],
};

export const PRECEDENCE: Theme = {
  name: "precedence",
  spans: [
    within(
      PROMPT_S,
      ["disposable, no host lives", "risky", "disposable", `alice@${DISPOSABLE.dead}.`],
      ["disposable, catch-all", "risky", "disposable", `alice@${DISPOSABLE.catchAll}.`],
      ["disposable, role account", "risky", "disposable", `info@${DISPOSABLE_DOMAIN}.`],
      ["disposable, null MX", "undeliverable", "null_mx", `alice@${DISPOSABLE.nullMx}.`],
      ["role account, we are blocked", ...BLOCKED, "info@blocked"],
      ["role account, full", "risky", "mailbox_full", "info@full"],
      ["catch-all behind TLS", ...CATCH_ALL, "alice@tlsall"],
      ["catch-all, one recipient a mail", ...CATCH_ALL, "alice@oneall"],
      ["SMTPUTF8 behind TLS, exists", ...EXISTS, "jürgen@tls"],
    ),
    within(COMES_BACK_S, ["SMTPUTF8 behind greylisting, exists", ...EXISTS, "jürgen@grey"]),
  ],
};

export const POLICY: Theme = {
  name: "Postfix policy",
  spans: [
    within(
      PROMPT_S,
      ["we are blocked, told at RCPT", ...BLOCKED, "alice@blocked", "nobody@blocked"],
      ["we are blocked, told at connect", ...BLOCKED, "alice@blockedatconnect"],
      ["DNSBL lists us, told at connect", ...BLOCKED, "alice@dnsblconnect"],
      ["DNSBL lists our HELO, told at EHLO", ...BLOCKED, "alice@dnsblhelo"],
      ["DNSBL lists us, told at RCPT", ...BLOCKED, "alice@dnsblrcpt", "nobody@dnsblrcpt"],
      ["DNSBL is asked and does not list us", ...EXISTS, "alice@dnsblclean"],
      ["DNSBL does not list us, unknown", ...UNKNOWN, "nobody@dnsblclean"],
      ["we have no reverse DNS (550)", ...BLOCKED, "alice@reversehard"],
      ["reverse DNS is demanded and is in order", ...EXISTS, "alice@reversegood"],
      ["reverse DNS is in order, unknown", ...UNKNOWN, "nobody@reversegood"],
      ["our HELO is refused at RCPT", ...BLOCKED, "alice@helo"],
      ["our HELO is refused at EHLO", ...BLOCKED, "alice@heloatehlo"],
      ["our HELO must resolve, and does", ...EXISTS, "alice@helogood"],
      ["its server relays nothing for it", ...BLOCKED, "alice@relaydenied"],
      ["our sender is refused at MAIL", ...REFUSED_SENDER, "alice@sender"],
      ["our sender is refused at RCPT", ...REFUSED_SENDER, "alice@senderatrcpt"],
      ["postscreen refuses us by DNSBL", ...BLOCKED, "alice@screened"],
      ["postscreen drops us by DNSBL", ...BLOCKED, "alice@screenedout"],
    ),
    within(
      ALL_RETRIES_S,
      ["we have no reverse DNS (450)", ...BLOCKED, "alice@reverse"],
      ["DNSBL lists us, told as 450", ...BLOCKED, "alice@dnsblsoft"],
    ),
  ],
};

export const LIMITS: Theme = {
  name: "Postfix limits",
  spans: [
    within(
      PROMPT_S,
      ["exists, one recipient a mail", ...EXISTS, "alice@onercpt"],
      ["unknown, one recipient a mail", ...UNKNOWN, "nobody@onercpt"],
      ["hangs up after one error, exists", ...EXISTS, "alice@hardlimit"],
      ["hangs up after one error, unknown", ...UNKNOWN, "nobody@hardlimit"],
    ),
    within(
      ALL_RETRIES_S,
      ["too many connections an hour (421)", ...LIMITED, "alice@rate"],
      ["too many connections at once (421)", ...LIMITED, "alice@concurrency"],
      ["too many recipients (450)", ...LIMITED, "alice@recipientrate"],
      ["too many messages (450)", ...LIMITED, "alice@messagerate"],
    ),
  ],
};

export const GREYLISTING: Theme = {
  name: "greylisting",
  spans: [
    within(
      COMES_BACK_S,
      ["greylisted, then accepted", ...EXISTS, "alice@grey"],
      ["greylisted, then unknown", ...UNKNOWN, "nobody@grey"],
      ["greylisted, then accepts everybody", ...CATCH_ALL, "alice@greyall"],
      ["accept-all secondary, primary greylists, exists", ...EXISTS, "alice@secondarygrey"],
      ["accept-all secondary, primary greylists, unknown", ...UNKNOWN, "nobody@secondarygrey"],
      ["postscreen's deep tests (450 4.3.2), exists", ...EXISTS, "alice@deepscreen"],
      ["postscreen's deep tests, unknown", ...UNKNOWN, "nobody@deepscreen"],
    ),
    within(ALL_RETRIES_S, ["greylisted for an hour", "risky", "greylisted", "alice@greylong"]),
  ],
};

export const UNICODE: Theme = {
  name: "SMTPUTF8 and IDN",
  spans: [
    within(
      PROMPT_S,
      ["SMTPUTF8, exists", ...EXISTS, "jürgen@utf8", "用户@utf8"],
      ["SMTPUTF8, unknown", ...UNKNOWN, "jürgenx@utf8"],
      ["needs SMTPUTF8, server has none", "undeliverable", "smtputf8_unsupported", "jürgen@noutf8"],
      ["SMTPUTF8 offered, refused at RCPT (5.6.7)", "undeliverable", "smtputf8_unsupported", "jürgen@utf8refuses"],
      ["SMTPUTF8 offered, refused at MAIL (555)", "undeliverable", "smtputf8_unsupported", "jürgen@utf8mail"],
      ["SMTPUTF8 offered and refused, not needed", ...EXISTS, "alice@utf8refuses", "alice@utf8mail"],
      ["server without SMTPUTF8, exists", ...EXISTS, "alice@noutf8"],
      ["IDN domain and SMTPUTF8, exists", ...EXISTS, "jürgen@bücher"],
      ["IDN domain, exists", ...EXISTS, "alice@bücher", "alice@xn--bcher-kva", "alice@BÜCHER"],
      ["IDN domain, unknown", ...UNKNOWN, "nobody@bücher"],
    ),
  ],
};

export const EXIM: Theme = {
  name: "Exim",
  spans: [
    within(
      PROMPT_S,
      ["exists", ...EXISTS, "alice@exim"],
      ["unknown", ...UNKNOWN, "nobody@exim", "nobody@eximworded"],
      ["disabled", "undeliverable", "mailbox_disabled", "gone@exim"],
      ["full", "risky", "mailbox_full", "stuffed@exim"],
      ["catch-all", ...CATCH_ALL, "anybody@eximcatchall"],
      ["administrative prohibition", ...BLOCKED, "alice@eximprohibits"],
      ["calls our sender out, exists", ...EXISTS, "alice@eximcallout"],
      ["calls our sender out, unknown", ...UNKNOWN, "nobody@eximcallout"],
      ["callout finds our sender unknown", ...REFUSED_SENDER, "alice@eximcalloutno", "nobody@eximcalloutno"],
    ),
    within(
      ALL_RETRIES_S,
      ["full for the time being", "risky", "mailbox_full", "overquota@exim"],
      ["router defers", ...DEFERRED, "alice@eximdefers"],
    ),
  ],
};

export const OPENSMTPD: Theme = {
  name: "OpenSMTPD",
  spans: [
    within(
      PROMPT_S,
      ["exists", ...EXISTS, "alice@osmtpd", "alice@osmtpdrules"],
      ["unknown virtual user (524 5.2.4)", ...UNKNOWN, "nobody@osmtpd"],
      ["we have no reverse DNS", ...BLOCKED, "alice@osmtpdrdns"],
      ["refused by rule (550 Invalid recipient)", ...UNKNOWN, "nobody@osmtpdrules"],
    ),
  ],
};

export const SINKS: Theme = {
  name: "smtp-sink",
  spans: [
    within(
      PROMPT_S,
      ["takes everything", ...CATCH_ALL, "alice@sink"],
      ["takes everything, knows only HELO", ...CATCH_ALL, "alice@sinkhelo"],
      ["takes everything, hangs up at QUIT", ...CATCH_ALL, "alice@sinkquit"],
      ["refuses every recipient alike, why is not said", ...BLOCKED, "alice@sinkrefuses"],
      // 500 is "command unrecognized" (RFC 5321 §4.2.2): neither the recipient nor we are meant.
      ["does not know RCPT (500)", "risky", "smtp_protocol_error", "alice@sinkrcpt"],
      ["does not know MAIL (500)", "risky", "smtp_protocol_error", "alice@sinkmail"],
      ["every recipient is unknown (550 5.1.1)", ...UNKNOWN, "alice@sinkunknown"],
    ),
    within(REPLY_TIMEOUT_S, ["hangs up at RCPT", "risky", "smtp_protocol_error", "alice@sinkdrops"]),
    within(ALL_RETRIES_S, ["defers every recipient (450 4.3.0)", ...DEFERRED, "alice@sinkdefers"]),
  ],
};
