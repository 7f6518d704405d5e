import { type Counts, noCounts } from "../../reports/ingest/rollup.ts";

export interface DayTotals extends Readonly<Counts> {
  readonly day: number;
}

/** The messages of a stored source on a day. */
export interface SourceDayTotals extends Pick<DayTotals, "day" | "messages" | "aligned" | "forwarded"> {
  /** The number of the source. */
  readonly source: number;
}

export interface ReporterTotals {
  /** Lower case; empty for reporters without a name. */
  readonly reporter: string;
  /** For untrusted reporters: the domain that authenticated their mail, or `UNAUTHENTICATED`; empty for trusted ones. */
  readonly author: string;
  /** For trusted reporters: the domain that authenticated their mail; null when not all of their reports came in such mail. */
  readonly authenticatedAs: string | null;
  /** See `ReporterStore`. */
  readonly voucher: number;
  readonly reports: number;
  readonly messages: number;
  readonly aligned: number;
  /** The last reported day of the address in the range. */
  readonly lastDay: number;
}

/** A reporter on a day. */
export interface ReporterDay extends Pick<ReporterTotals, "reporter" | "authenticatedAs"> {
  readonly day: number;
}

export interface NameTotals {
  /** The header_from domain; empty for all that are not at or below the monitored domain. */
  readonly name: string;
  readonly messages: number;
  readonly aligned: number;
}

export interface ReportedDay {
  readonly day: number;
  /** Each once, separated by commas. */
  readonly policies: string | null;
}

/** The messages of a domain on a day. */
export interface DomainDay {
  readonly domain: number;
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
}

/** The reports of a domain on a day, and the messages in them. */
export interface ReportDay {
  readonly day: number;
  readonly reports: number;
  readonly messages: number;
  readonly aligned: number;
}

/** Untrusted reports, and the messages in them. */
export interface UntrustedTotals {
  readonly reports: number;
  readonly messages: number;
}

/** What the DNS or the operator's GeoIP database says about an address. */
export interface SourceAddress {
  readonly ip: string;
  /** The reverse name; null when there is none, or it is not known yet. */
  readonly name: string | null;
  /** Whether the name resolves to the address. */
  readonly isConfirmed: boolean;
  /** Whether the reverse name was ever looked up successfully. */
  readonly isAsked: boolean;
  readonly asn: number | null;
  readonly asName: string | null;
  /** ISO 3166-1 alpha-2. */
  readonly country: string | null;
}

/** Message counts of a range of days. */
export type Totals = Readonly<Counts>;

export const NO_TOTALS: Totals = noCounts();

/** Adds counts to a sum; with a `sign` of -1, subtracts them. */
const addTo = (sum: Counts, counts: Totals, sign: 1 | -1) => {
  sum.messages += sign * counts.messages;
  sum.aligned += sign * counts.aligned;
  sum.alignedDkim += sign * counts.alignedDkim;
  sum.alignedSpf += sign * counts.alignedSpf;
  sum.forwarded += sign * counts.forwarded;
  sum.authenticated += sign * counts.authenticated;
  sum.quarantined += sign * counts.quarantined;
  sum.rejected += sign * counts.rejected;
  return sum;
};

export const sumTotals = (all: readonly Totals[]): Totals => {
  const sum = noCounts();
  for (const counts of all) addTo(sum, counts, 1);
  return sum;
};

/** The sum of two counts; with a `sign` of -1, their difference. */
export const addTotals = (a: Totals, b: Totals, sign: 1 | -1): Totals => addTo(addTo(noCounts(), a, 1), b, sign);

/** Receivers do not recognize all forwarded mail; this share of the failing mail shows a forwarder. */
const FORWARDED_SHARE = 0.1;

/** Whether receivers recognize failing mail as forwarded. */
export const isRecognizedForwarding = ({
  messages,
  aligned,
  forwarded,
}: Pick<Totals, "messages" | "aligned" | "forwarded">): boolean => {
  const failing = messages - aligned;
  return failing > 0 && forwarded > 0 && forwarded >= failing * FORWARDED_SHARE;
};

/** A share in percent with one decimal; null when `whole` is 0. Never rounded up to 100 or down to 0. */
export const percentOf = (part: number, whole: number): number | null => {
  if (whole === 0) return null;
  const rounded = Math.round((part / whole) * 1000) / 10;
  if (rounded === 100 && part < whole) return 99.9;
  return rounded === 0 && part > 0 ? 0.1 : rounded;
};
