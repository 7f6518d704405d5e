/** The three verdicts of the product. */
export type Verdict = "deliverable" | "risky" | "undeliverable";

/** Truth, verdict and sub_status, then the addresses: `@name` stands for `@name.lab.test`, a final dot for a full name. */
export type Group = readonly [truth: string, verdict: Verdict, subStatus: string, ...addresses: string[]];

/** Rows that must all end within the same time. */
interface Span {
  readonly limitS: number;
  readonly groups: readonly Group[];
}

/** Rows that are about the same thing; the score is told for each theme. */
export interface Theme {
  readonly name: string;
  /** Settings that the command line gets besides; such rows are not asked by HTTP, because the service has its own. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly spans: readonly Span[];
}

/** Nobody keeps the binary waiting; generous, because many rows share two cores. */
export const PROMPT_S = 8;
/** One wait runs out: a reply (8 s) or a question to DNS (10 s), with the time to hang up. */
export const REPLY_TIMEOUT_S = 13;
export const DNS_TIMEOUT_S = 13;
/** All retries after a question to DNS that runs out of its time each time. */
export const DNS_RETRIES_S = 55;
/** The binary comes back once, after the first of its waits (2 s), or until all of them are used up (2 + 3 + 4 s). */
export const COMES_BACK_S = 12;
export const ALL_RETRIES_S = 18;

/** What a busy machine takes longer: every limit has room for it. */
const BUSY_S = 15;

/** Binds groups to the time within which they must end. */
export const within = (limitS: number, ...groups: readonly Group[]): Span => ({ limitS: limitS + BUSY_S, groups });
