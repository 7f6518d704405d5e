import type { Signals } from "../../verify/result.ts";

export type SignalsKey = keyof Signals;

/** The signals of a result, in the order in which they are shown. */
export const SIGNAL_LABELS: Readonly<Record<SignalsKey, string>> = {
  syntax: "Syntax",
  domain: "Domain",
  mx: "MX",
  smtp: "SMTP",
  catch_all: "Catch-all",
  role_account: "Role account",
  disposable: "Disposable",
  dnsbl: "Blocklists",
  toxic: "Suppressed",
  greylisting: "Greylisting",
};
