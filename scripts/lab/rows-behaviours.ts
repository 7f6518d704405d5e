import { EXITS, FAULTY_SOCKS } from "./hosts.ts";
import { ALL_RETRIES_S, COMES_BACK_S, PROMPT_S, REPLY_TIMEOUT_S, type Theme, within } from "./rows.ts";
import { SECOND_SOCKS_URL, SOCKS_URL, WRONG_PASSWORD_URL, faultySocksUrl } from "./socks.ts";

const EXISTS = ["deliverable", "mailbox_exists"] as const;
const UNKNOWN = ["undeliverable", "mailbox_not_found"] as const;
const NO_TLS = ["risky", "tls_required"] as const;
const SILENT = ["risky", "smtp_timeout"] as const;
const GARBLED = ["risky", "smtp_protocol_error"] as const;

/** Every reply comes in time, and all together take this long at most: 2 or 3 s for each. */
const PATIENCE_S = 25;

export const TLS: Theme = {
  name: "TLS",
  spans: [
    within(
      PROMPT_S,
      ["demanded, self-signed, exists", ...EXISTS, "alice@tls"],
      ["demanded, self-signed, unknown", ...UNKNOWN, "nobody@tls"],
      ["demanded, expired certificate, exists", ...EXISTS, "alice@tlsexpired"],
      ["demanded, expired certificate, unknown", ...UNKNOWN, "nobody@tlsexpired"],
      ["demanded, TLS 1.3 only, exists", ...EXISTS, "alice@tls13"],
      ["demanded, TLS 1.0 only, exists", ...EXISTS, "alice@tls10"],
      ["demanded, TLS 1.0 only, unknown", ...UNKNOWN, "nobody@tls10"],
      ["demanded, none offered", ...NO_TLS, "alice@nostarttls"],
      ["demanded, no handshake but text", ...NO_TLS, "alice@brokentls"],
      ["demanded, hangs up at STARTTLS", ...NO_TLS, "alice@tlscloses"],
      ["demanded, RST at STARTTLS", ...NO_TLS, "alice@tlsreset"],
      ["demanded, and a client certificate too", ...NO_TLS, "alice@tlsclientcert"],
      ["demanded only of recipients (450 4.7.1), exists", ...EXISTS, "alice@tlsatrcpt"],
      ["demanded only of recipients, unknown", ...UNKNOWN, "nobody@tlsatrcpt"],
      ["offered and broken, not demanded, exists", ...EXISTS, "alice@tlsoptional"],
      ["offered and broken, not demanded, unknown", ...UNKNOWN, "nobody@tlsoptional"],
    ),
    within(
      REPLY_TIMEOUT_S,
      ["demanded, handshake never answered", ...NO_TLS, "alice@tlssilent"],
      ["clear text injected behind the 220", ...NO_TLS, "alice@injects", "nobody@injects"],
    ),
    within(ALL_RETRIES_S, ["demanded, 454 not available", ...NO_TLS, "alice@tls454"]),
  ],
};

export const SLOW: Theme = {
  name: "slow servers",
  spans: [
    within(
      REPLY_TIMEOUT_S,
      ["postscreen: teaser, pregreet trap, exists", ...EXISTS, "alice@greets"],
      ["postscreen: teaser, pregreet trap, unknown", ...UNKNOWN, "nobody@greets"],
      ["Exim greets after 2 s, exists", ...EXISTS, "alice@eximgreets"],
      ["Exim answers RCPT after 2 s, exists", ...EXISTS, "alice@eximslow"],
      ["Exim answers RCPT after 2 s, unknown", ...UNKNOWN, "nobody@eximslow"],
      ["replies come byte by byte, exists", ...EXISTS, "alice@slow"],
      ["replies come byte by byte, unknown", ...UNKNOWN, "nobody@slow"],
    ),
    within(
      PATIENCE_S,
      ["each RCPT takes 3 s, exists", ...EXISTS, "alice@slowrcpt"],
      ["each RCPT takes 3 s, unknown", ...UNKNOWN, "nobody@slowrcpt"],
      ["tarpit: each reply takes 2 s, exists", ...EXISTS, "alice@tarpit"],
      ["tarpit: each reply takes 2 s, unknown", ...UNKNOWN, "nobody@tarpit"],
    ),
  ],
};

export const REPLIES: Theme = {
  name: "odd replies",
  spans: [
    within(
      PROMPT_S,
      ["556 at RCPT", "undeliverable", "null_mx", "alice@code556"],
      ["252 at RCPT, exists", ...EXISTS, "alice@code252"],
      ["252 at RCPT, unknown", ...UNKNOWN, "nobody@code252"],
      ["551 5.1.6 moved", ...UNKNOWN, "moved@codes"],
      ["550 5.4.1 access denied, as Outlook says of unknown ones", ...UNKNOWN, "denied@codes"],
      ["525 disabled", "undeliverable", "mailbox_disabled", "retired@codes"],
      ["552 without an enhanced code, full", "risky", "mailbox_full", "stuffed@codes"],
      ["550 5.7.1 policy, unknown ones are told otherwise", "risky", "smtp_blocked", "guarded@codes"],
      ["mixed codes in one reply, the last counts", ...UNKNOWN, "nobody@mixed"],
      ["mixed codes for others, exists", ...EXISTS, "alice@mixed"],
      ["bare codes without text, exists", ...EXISTS, "alice@shortreply"],
      ["554 No SMTP service here", "risky", "smtp_blocked", "alice@noservice"],
      ["banner of several lines, the last says 554", "risky", "smtp_blocked", "alice@turncoat"],
      ["421 to the second recipient, exists", ...EXISTS, "alice@onlyfirst"],
      ["421 to the second recipient, unknown", ...UNKNOWN, "nobody@onlyfirst"],
      ["hangs up after the first recipient, exists", ...EXISTS, "alice@hangsfirst"],
      ["hangs up after the first recipient, unknown", ...UNKNOWN, "nobody@hangsfirst"],
      ["accepts everything and hangs up after the first recipient", "risky", "catch_all", "nobody@allhangsfirst"],
      ["550 5.7.1 no such user, exists", ...EXISTS, "alice@policycode"],
      ["550 5.7.1 no such user, postmaster is accepted", ...UNKNOWN, "nobody@policycode"],
      ["550 5.7.1 no such user, for postmaster as well", "risky", "smtp_blocked", "nobody@policyblind"],
      ["550 5.1.1 cannot verify the recipient", "risky", "smtp_blocked", "nobody@cannotverify"],
      ["server knows only HELO, exists", ...EXISTS, "alice@noehlo"],
      ["server knows only HELO, unknown", ...UNKNOWN, "nobody@noehlo"],
      ["never answers QUIT, exists", ...EXISTS, "alice@quitless"],
      ["never answers QUIT, unknown", ...UNKNOWN, "nobody@quitless"],
    ),
    within(
      COMES_BACK_S,
      ["greylists at MAIL, exists", ...EXISTS, "alice@greymail"],
      ["greylists at MAIL, unknown", ...UNKNOWN, "nobody@greymail"],
      ["greylists in the words of a policy, exists", ...EXISTS, "alice@policygrey"],
      ["greylists in the words of a policy, unknown", ...UNKNOWN, "nobody@policygrey"],
      ["out of order at first, exists", ...EXISTS, "alice@recovers"],
      ["out of order at first, unknown", ...UNKNOWN, "nobody@recovers"],
    ),
    within(
      ALL_RETRIES_S,
      ["421 at connect", "risky", "rate_limited", "alice@busy"],
      ["452 4.5.3 to the first recipient", "risky", "rate_limited", "alice@toomany"],
    ),
  ],
};

export const HOSTILE: Theme = {
  name: "hostile servers",
  spans: [
    within(
      REPLY_TIMEOUT_S,
      ["never speaks", ...SILENT, "alice@silent"],
      ["banner of one byte a second, endless", ...SILENT, "alice@bannerdrip"],
      ["EHLO line by line, endless", ...SILENT, "alice@ehlodrip"],
      ["never answers RCPT", ...SILENT, "alice@mutercpt"],
      ["EHLO endless, at full speed", ...GARBLED, "alice@ehloendless"],
      ["RCPT endless, at full speed", ...GARBLED, "alice@rcptendless"],
      ["line of 50 kB at RCPT", ...GARBLED, "alice@longline"],
      ["banner of 1 MB", ...GARBLED, "alice@megabanner"],
      ["NULs for a banner", ...GARBLED, "alice@nuls"],
      ["an HTTP server", ...GARBLED, "alice@garbage"],
      ["an SSH server", ...GARBLED, "alice@ssh"],
      ["hangs up at connect without a word", ...GARBLED, "alice@shuts"],
      ["hangs up after EHLO", ...GARBLED, "alice@closeseach"],
      ["hangs up at RCPT", ...GARBLED, "alice@drops"],
      ["RST in the middle of the reply to RCPT", ...GARBLED, "alice@resets"],
      ["code 999 at RCPT", ...GARBLED, "alice@code999"],
      ["code 354 at RCPT", ...GARBLED, "alice@code354"],
      ["text without a code at RCPT", ...GARBLED, "alice@nocode"],
      ["550 unasked behind the banner", ...GARBLED, "alice@unaskedbanner"],
      ["550 unasked behind EHLO", ...GARBLED, "alice@unaskedehlo"],
      ["250 unasked behind MAIL", ...GARBLED, "nobody@unaskedmail"],
      ["550 unasked behind MAIL", ...GARBLED, "alice@unaskedno"],
      // Without a reply to RSET an acceptance proves nothing when it is the only reply, as in the list; a refusal does.
      ["never answers RSET", "undeliverable", "mailbox_not_found", "nobody@muterset"],
      ["250 to everything", "risky", "catch_all", "alice@everything"],
    ),
  ],
};

const SOURCE = "POSTWARDEN_SOURCE_ADDRESSES";
const PROXIES = "POSTWARDEN_SOCKS_PROXIES";

const passes = [
  within(
    PROMPT_S,
    ["the exit is welcome, exists", "deliverable", "mailbox_exists", "alice@exitonly"],
    ["the exit is welcome, unknown", "undeliverable", "mailbox_not_found", "nobody@exitonly"],
    ["the exit is welcome, catch-all", "risky", "catch_all", "alice@exitall"],
  ),
];

const isBlocked = [
  within(PROMPT_S, ["the exit is blocked", "risky", "smtp_blocked", "alice@exitonly", "nobody@exitonly"]),
];

const throughSocks = [
  within(
    PROMPT_S,
    ["TLS demanded, exists", "deliverable", "mailbox_exists", "alice@tls"],
    ["first host refuses connections, exists", "deliverable", "mailbox_exists", "alice@failover"],
    ["all hosts are dead", "risky", "smtp_unreachable", "alice@dead"],
    ["MX at a private address", "undeliverable", "unroutable_mx", "alice@privatemx"],
  ),
];

/** Coming back by the other exit would be greylisted anew, and end later than this. */
const SAME_EXIT_S = 5;
const comesBack = [
  within(SAME_EXIT_S, ["greylisted, comes back by the same exit", "deliverable", "mailbox_exists", "alice@grey"]),
];

const PER_EGRESS = "POSTWARDEN_MAX_CONNECTIONS_PER_EGRESS";

/** Beside a proxy that fails, another one gets the reply; the connect timeout is 2 s. */
const BESIDE_S = 8;
const besides = [
  within(
    BESIDE_S,
    ["a proxy fails, another works: exists", "deliverable", "mailbox_exists", "alice@exitonly"],
    ["a proxy fails, another works: unknown", "undeliverable", "mailbox_not_found", "nobody@exitonly"],
  ),
];
/** All retries, each of which waits for the connect timeout. */
const SILENT_RETRIES_S = 30;
/** Without another one, nothing is said about the mail host, and nothing is charged. */
const aloneInTrouble = [
  within(SILENT_RETRIES_S, ["the only proxy fails", "risky", "internal_error", "alice@exitonly", "nobody@exitonly"]),
];

/** A proxy that fails in some way, alone and before one that works. */
const troubles = (name: string, url: string, alone: Theme["spans"] = aloneInTrouble): readonly Theme[] => [
  { name: `exit: SOCKS5 ${name}`, environment: { [PROXIES]: url }, spans: alone },
  {
    name: `exit: SOCKS5 ${name}, and one that works`,
    environment: { [PROXIES]: `${url},${SOCKS_URL}` },
    spans: besides,
  },
];

/** A proxy that accepts the client and never reports about the target, perhaps because of the target. */
const isMute = [within(PROMPT_S, ["the proxy never reports", "risky", "smtp_unreachable", "alice@exitonly"])];
/** A proxy that ends every session after the banner, as a server may. */
const diesAlways = [within(PROMPT_S, ["the proxy ends sessions", "risky", "smtp_protocol_error", "alice@exitonly"])];

/** The same mail host, left for by several exits, of which it lets in some. */
export const EXIT_ROWS: readonly Theme[] = [
  { name: "exit: default", environment: {}, spans: isBlocked },
  { name: "exit: welcome source address", environment: { [SOURCE]: EXITS.welcome }, spans: passes },
  { name: "exit: blocked source address", environment: { [SOURCE]: EXITS.unwelcome }, spans: isBlocked },
  {
    name: "exit: blocked and welcome source address",
    environment: { [SOURCE]: `${EXITS.unwelcome},${EXITS.welcome}` },
    spans: [...passes, ...comesBack],
  },
  { name: "exit: SOCKS5", environment: { [PROXIES]: SOCKS_URL }, spans: [...passes, ...throughSocks] },
  {
    name: "exit: two SOCKS5 proxies with a connection each",
    environment: { [PROXIES]: `${SOCKS_URL},${SECOND_SOCKS_URL}`, [PER_EGRESS]: "1" },
    spans: [...passes, ...comesBack],
  },
  ...troubles("with a wrong password", WRONG_PASSWORD_URL),
  ...troubles("that is not there", faultySocksUrl(FAULTY_SOCKS.dead)),
  ...troubles("that says nothing", faultySocksUrl(FAULTY_SOCKS.silent)),
  ...troubles("that forbids the port", faultySocksUrl(FAULTY_SOCKS.forbids)),
  ...troubles("that never reports", faultySocksUrl(FAULTY_SOCKS.mute), isMute),
  ...troubles("that dies in sessions", faultySocksUrl(FAULTY_SOCKS.dies), diesAlways),
];
