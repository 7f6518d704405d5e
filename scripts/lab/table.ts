import { SUFFIX, hasIpv6 } from "./hosts.ts";
import { EXIT_ROWS, HOSTILE, REPLIES, SLOW, TLS } from "./rows-behaviours.ts";
import { DNS_SHAPES, IPV6_ROWS, SEVERAL_HOSTS, SYNTAX, WRONG_DNS_DIRECT_ROWS, WRONG_DNS_ROWS } from "./rows-domains.ts";
import { EXIM, GREYLISTING, LIMITS, MAILBOXES, OPENSMTPD, POLICY, PRECEDENCE, SINKS, UNICODE } from "./rows-servers.ts";
import type { Group, Theme, Verdict } from "./rows.ts";

/** An address of the lab, what is true of it, and what the binary must therefore answer, and in which time. */
export interface Row {
  readonly theme: string;
  readonly address: string;
  readonly truth: string;
  readonly verdict: Verdict;
  readonly subStatus: string;
  readonly limitS: number;
  /** Settings for the command line, which alone is asked about such a row. */
  readonly environment: Readonly<Record<string, string>> | null;
}

const qualify = (address: string): string => {
  if (address.endsWith(".")) return address.slice(0, -1);
  return /@./.test(address) ? `${address}.${SUFFIX}` : address;
};

const rowsOf = (theme: Theme, [truth, verdict, subStatus, ...addresses]: Group, limitS: number): readonly Row[] =>
  addresses.map((address) => {
    const { name, environment = null } = theme;
    return { theme: name, address: qualify(address), truth, verdict, subStatus, limitS, environment };
  });

const THEMES: readonly Theme[] = [
  ...[MAILBOXES, PRECEDENCE, POLICY, LIMITS, GREYLISTING, UNICODE],
  ...[EXIM, OPENSMTPD, SINKS],
  ...[SEVERAL_HOSTS, DNS_SHAPES, WRONG_DNS_ROWS, WRONG_DNS_DIRECT_ROWS, ...(hasIpv6() ? [IPV6_ROWS] : [])],
  ...[TLS, SLOW, REPLIES, HOSTILE, SYNTAX],
  ...EXIT_ROWS,
];

/** The table of addresses, theme by theme. It grows by lines of the themes; nothing else has to know of a new one. */
export const ROWS: readonly Row[] = THEMES.flatMap((theme) =>
  theme.spans.flatMap(({ limitS, groups }) => groups.flatMap((group) => rowsOf(theme, group, limitS))),
);
