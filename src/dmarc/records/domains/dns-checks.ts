import type { Result } from "../../../foundation/base/errors.ts";
import type { Authorisation, NameTooLong } from "../record/authorisation.ts";
import type { PolicyDiscovery } from "../record/discovery.ts";
import type { ValidRecord } from "../record/record.ts";
import { recordFaults, ruaTags } from "../record/record.ts";
import { dmarcRecordsIn, recordHost } from "../record/record-published.ts";
import { mailtoUri, reportAddress } from "../record/rua.ts";
import type { DnsCheck, DnsObservation } from "./domain-state.ts";

const AUTHORISING_TEXT = "v=DMARC1;";
/** Longer texts are truncated before they are stored; a record may have 65,535 octets. */
const SHOWN_CHARACTERS_MAX = 2_048;

/** A stored check. */
export const truncateCheck = (check: DnsCheck): DnsCheck => ({
  ...check,
  observed: shortenText(check.observed),
  expected: shortenText(check.expected),
});

const shortenText = (text: string | null): string | null =>
  text === null || text.length <= SHOWN_CHARACTERS_MAX
    ? text
    : `${text.slice(0, SHOWN_CHARACTERS_MAX).toWellFormed()}…`;

/** The texts at the name that are DMARC records; null without a definite response. */
export const recordsOf = ({ published }: PolicyDiscovery): string[] | null =>
  published.kind === "failure" && published.outcome !== "invalid_name"
    ? null
    : dmarcRecordsIn(published.kind === "failure" ? [] : published.texts).map(({ text }) => text);

interface RecordFacts {
  readonly records: readonly string[] | null;
  readonly expected: string | null;
  readonly discovery: PolicyDiscovery;
}

/** Whether there is exactly one record, with its faults. */
export const recordCheck = (domain: string, { records, expected, discovery }: RecordFacts): DnsCheck => {
  const host = recordHost(domain);
  const common = { code: "record" as const, expected };
  if (records === null) return { ...common, ok: null, observed: null, message: failureMessage(discovery, host) };
  const observed = records.length === 0 ? null : records.join("\n");
  if (records.length === 1) {
    const faults = discovery.kind === "own" ? recordFaults(discovery.record) : [];
    return { ...common, ok: true, observed, message: [`There is one DMARC record at ${host}.`, ...faults].join(" ") };
  }
  if (records.length > 1) {
    const message = `There are ${records.length} DMARC records at ${host}; receivers ignore all of them. Keep one.`;
    return { ...common, ok: false, observed, message };
  }
  const message =
    discovery.kind === "inherited"
      ? `There is no DMARC record at ${host}; receivers apply that of ${discovery.from}, and reports are about that domain.`
      : `There is no DMARC record at ${host}.`;
  return { ...common, ok: false, observed, message };
};

/** Whether our address is in the `rua` of the domain's own record. */
export const addressCheck = (domain: string, ours: string, discovery: PolicyDiscovery): DnsCheck => {
  const expected = mailtoUri(ours);
  const common = { code: "reporting_address" as const, observed: null, expected };
  const records = recordsOf(discovery);
  if (records === null) return { ...common, ok: null, message: failureMessage(discovery, recordHost(domain)) };
  if (records.length > 1) {
    return { ...common, ok: false, message: "With several records, receivers ignore all of them and send no reports." };
  }
  if (discovery.kind === "own") return { ...common, ...ownAddress(discovery.record, reportAddress(ours)) };
  if (discovery.kind === "inherited") {
    const isThere = discovery.record.values.rua.some(({ address }) => address === reportAddress(ours));
    const message = isThere
      ? `The reporting address is in the record of ${discovery.from}, which ${domain} inherits: those reports are about ${discovery.from}. Publish a record at ${domain}, or enroll ${discovery.from}.`
      : `${domain} inherits the record of ${discovery.from}. Publish a record at ${domain} that contains the reporting address.`;
    return { ...common, ok: false, message };
  }
  const message = "Without a record there is no rua for the reporting address.";
  return { ...common, ok: false, message };
};

/** Of several `rua` tags only the first one counts, and not with every receiver. */
const ownAddress = (record: ValidRecord, ours: string | null): Pick<DnsCheck, "ok" | "observed" | "message"> => {
  const tags = ruaTags(record);
  const holders = tags.map((uris) => uris.some(({ address }) => address === ours));
  const observed = tags.map((uris) => uris.map(({ text }) => text).join(",")).join("\n");
  return {
    ok: holders[0] === true,
    observed: observed.trim() === "" ? null : observed,
    message: whereSentence(holders),
  };
};

const whereSentence = (holders: readonly boolean[]): string => {
  const where = holders.indexOf(true);
  if (where === -1) return "The reporting address is not in rua.";
  if (holders.length === 1) return "The reporting address is in rua.";
  return `The reporting address is in rua tag ${where + 1} of ${holders.length}: receivers differ in which one they use, or ignore the record. Put all addresses into one rua tag.`;
};

const failureMessage = ({ published }: PolicyDiscovery, host: string): string =>
  `No usable DNS response for ${host} (${published.kind === "failure" ? published.outcome : "no response"}).`;

/** A record with its own `rua` authorizes reports, but sends them to another address. */
export const authorisationOf = ({ status, redirectsTo }: Authorisation): DnsObservation["authorisation"] => {
  if (status === "indefinite") return undefined;
  return status === "authorised" && redirectsTo.length > 0 ? "redirected" : status;
};

/** Whether receivers may report to the report host. */
export const authorisationCheck = (authorisation: Result<Authorisation, NameTooLong>): DnsCheck => {
  if (!authorisation.ok) return tooLongCheck(authorisation.error);
  const { status, observed, message } = authorisation.value;
  const allowed = authorisationOf(authorisation.value);
  return {
    code: "authorisation",
    ok: allowed === undefined ? null : allowed === "authorised" || allowed === "not_needed",
    observed: observed.length === 0 ? null : observed.join("\n"),
    expected: status === "not_needed" ? null : AUTHORISING_TEXT,
    message,
  };
};

const tooLongCheck = ({ octets, octetsMax }: NameTooLong): DnsCheck => ({
  code: "authorisation",
  ok: false,
  observed: null,
  expected: AUTHORISING_TEXT,
  message: `The name that receivers would look up has ${octets} octets; the DNS allows ${octetsMax}.`,
});
