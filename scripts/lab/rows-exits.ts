import { EXITS, FAULTY_SOCKS } from "./hosts.ts";
import { PROMPT_S, within } from "./rows.ts";
import type { Theme } from "./rows.ts";
import { faultySocksUrl, SECOND_SOCKS_URL, SOCKS_URL, WRONG_PASSWORD_URL } from "./socks.ts";

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
