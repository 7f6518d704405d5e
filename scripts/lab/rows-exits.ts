import { EXITS } from "./hosts.ts";
import { PROMPT_S, within } from "./rows.ts";
import type { Theme } from "./rows.ts";
import { SOCKS_URL } from "./socks.ts";

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
];
