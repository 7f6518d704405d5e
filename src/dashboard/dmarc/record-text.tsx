import { CopyBlock } from "../components/copy.tsx";
import { Row, Rows } from "../components/panel.tsx";
import { differentTags, diffRecords } from "../../dmarc/records/record/record-tags.ts";
import { organisationalDomain } from "../../foundation/mail/organisational-domain.ts";
import type { Kind } from "../components/inline.tsx";
import type { Publication, PublicationState } from "../../dmarc/records/domains/publication.ts";
import type { ChangeCode } from "../../dmarc/records/domains/domain-state.ts";

const LABELS = { removed: "[removed: ", added: "[added: " } as const;

/** How one text of a record becomes the other: what goes is struck through, what comes is underlined. */
export const RecordDiff = ({ before, after }: { readonly before: string; readonly after: string }) => (
  <p class="record-diff mono">
    {diffRecords(before, after).map(({ kind, text }, at) => {
      if (kind === "same") return <span key={at}>{text}</span>;
      const Mark = kind === "removed" ? "del" : "ins";
      return (
        <Mark key={at}>
          <span class="unseen">{LABELS[kind]}</span>
          {text}
          <span class="unseen">]</span>
        </Mark>
      );
    })}
  </p>
);

/** The tags that differ, in words. */
export const TagChanges = ({ before, after }: { readonly before: string; readonly after: string }) => {
  const changes = differentTags(before, after);
  if (changes.length === 0) return null;
  return (
    <ul class="tag-changes small">
      {changes.map(({ tag, before: was, after: is }) => (
        <li key={tag}>
          <b class="mono">{tag}</b>{" "}
          {was === null ? (
            <>
              added: <span class="mono">{is}</span>
            </>
          ) : is === null ? (
            <>
              removed, was <span class="mono">{was}</span>
            </>
          ) : (
            <>
              changes from <span class="mono">{was}</span> to <span class="mono">{is}</span>
            </>
          )}
        </li>
      ))}
    </ul>
  );
};

/** The zone that a name is entered in, and the name as most DNS providers want it: without the zone. */
export const nameInZone = (host: string, domain: string): { readonly zone: string; readonly name: string } => {
  const zone = organisationalDomain(domain) ?? domain;
  return { zone, name: host.endsWith(`.${zone}`) ? host.slice(0, -zone.length - 1) : host };
};

interface PublishProps {
  readonly host: string;
  readonly domain: string;
  readonly value: string;
  /** The value as strings of at most 255 octets. */
  readonly strings: readonly string[];
}

/** What to enter at the DNS provider. */
export const PublishRecord = ({ host, domain, value, strings }: PublishProps) => {
  const { zone, name } = nameInZone(host, domain);
  return (
    <div class="publish">
      <Rows>
        <Row label="Type">
          <span class="mono">TXT</span>
        </Row>
        <Row label="TTL">3600, or what your provider suggests</Row>
      </Rows>
      <p class="label">Name, in the zone {zone}</p>
      <CopyBlock text={name} label="Name of the record" />
      <p class="soft small">
        If your provider wants the whole name, enter <span class="mono">{host}</span>. Many add the zone by themselves:
        the result must not be <span class="mono">{`${host}.${zone}`}</span>.
      </p>
      <p class="label">Value</p>
      <CopyBlock text={value} label="Value of the record" />
      {strings.length > 1 && (
        <>
          <p class="soft small">
            The value is longer than 255 octets. Most providers split it by themselves; if yours does not, enter these{" "}
            {strings.length} strings in one record:
          </p>
          <CopyBlock text={strings.map((string) => JSON.stringify(string)).join(" ")} label="Strings of the value" />
        </>
      )}
    </div>
  );
};

interface StateWords {
  readonly kind: Kind;
  readonly label: string;
  readonly title: string;
}

const STATE_WORDS: Readonly<Record<PublicationState, StateWords>> = {
  in_order: { kind: "ok", label: "In order", title: "The record is published, and reports can arrive" },
  not_authorised: {
    kind: "bad",
    label: "Not authorized",
    title: "The record is published, but receivers may not send the reports here",
  },
  missing: { kind: "warn", label: "Not published", title: "No DMARC record is published" },
  no_address: { kind: "warn", label: "Incomplete", title: "The published record lacks your reporting address" },
  conflict: { kind: "bad", label: "Conflict", title: "Fix the published records first" },
  unknown: { kind: "unknown", label: "Not known", title: "The published record is not known" },
};

/** The state of a record as a conclusion. */
export const publicationWords = ({ state, checkedAtMs }: Pick<Publication, "state" | "checkedAtMs">): StateWords =>
  checkedAtMs === null ? { ...STATE_WORDS.unknown, title: "The DNS was not checked yet" } : STATE_WORDS[state];

/** What the conclusion rests on and what follows from it. */
export const publicationReason = (publication: Publication): string => {
  const { state, advised, checks, checkedAtMs, reportingAddress } = publication;
  const messages = checks.filter(({ ok }) => ok !== true).map(({ message }) => message);
  switch (state) {
    case "in_order":
      return `Mail receivers send their reports to ${reportingAddress}. The first one can take up to 48 hours.`;
    case "missing":
    case "no_address":
      return `Publish the record below, then check it here. No report can arrive before that.${isBarred(publication) ? " The operator of this service has to publish a record, too: see “For the operator of this service”." : ""}`;
    case "conflict":
      return advised?.message ?? messages.join(" ");
    case "not_authorised":
      return `Your part is done. ${messages.join(" ")} The operator of this service publishes that record once.`;
    case "unknown":
      return checkedAtMs === null
        ? "Check now to learn what to publish."
        : `${messages.join(" ")} This failure says nothing about the record: check again in a minute.`;
    default:
      return state satisfies never;
  }
};

const isBarred = ({ checks }: Pick<Publication, "checks">): boolean =>
  checks.some(({ code, ok }) => code === "authorisation" && ok === false);

/** What to do with the record, in a sentence. */
export const publishText = ({ action, message }: NonNullable<Publication["advised"]>): string => {
  if (action === "create") return "Publish this TXT record.";
  return action === "update"
    ? "Replace the present TXT record with this one: only your reporting address is added, everything else stays."
    : message;
};

const isWaiting = ({ state }: Pick<Publication, "state">): boolean => state === "missing" || state === "no_address";

/** Until when resolvers may still have the record of before; null when nothing is waited for. */
export const waitsUntilMs = (publication: Publication, nowMs: number): number | null => {
  const { cachedUntilMs } = publication;
  return isWaiting(publication) && cachedUntilMs !== null && cachedUntilMs > nowMs ? cachedUntilMs : null;
};

/** What a check found that somebody asked for after publishing the record: one sentence. `until` is a time of day. */
export const checkedSentence = (before: Publication, after: Publication, until: string | null): string => {
  if (after.state === "in_order") return "Published: the record is in place, and reports can arrive.";
  if (after.state === "unknown") {
    const failed = after.checks.find(({ ok }) => ok === null);
    return `Not known: the DNS did not respond.${failed === undefined ? "" : ` ${failed.message}`} Check again in a minute.`;
  }
  if (after.state === "not_authorised" || after.state === "conflict") {
    const failed = after.checks.find(({ ok }) => ok === false);
    return `${publicationWords(after).title}.${failed === undefined ? "" : ` ${failed.message}`}`;
  }
  const isNew = before.checkedAtMs !== null && (before.advised?.current ?? null) !== (after.advised?.current ?? null);
  if (isNew && after.state === "no_address") {
    return "Different: the published record has changed, but it lacks your reporting address. Compare it with the one below.";
  }
  const wait = until === null ? "" : ` Resolvers may keep the old answer until ${until}.`;
  return `Not visible yet.${wait} It is checked again by itself within the hour.`;
};

const CHANGE_WORDS: Readonly<Record<ChangeCode, string>> = {
  record_added: "a record was published",
  record_removed: "the record was removed",
  record_changed: "the record was changed",
  policy_weakened: "the policy protects less than before",
  reporting_address_removed: "the reporting address was removed",
  reporting_address_added: "the reporting address was added",
  authorisation_lost: "receivers may no longer send reports to the report host",
  authorisation_gained: "receivers may send reports to the report host",
  status: "the status changed",
};

/** What changed, in words. */
export const changeWords = (codes: readonly ChangeCode[]): string => {
  const text = codes
    .filter((code) => code !== "status" || codes.length === 1)
    .map((code) => CHANGE_WORDS[code])
    .join("; ");
  return text === "" ? "First check" : `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
};
