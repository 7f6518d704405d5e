import { CopyBlock } from "../components/copy.tsx";
import { Row, Rows } from "../components/panel.tsx";
import { differentTags, diffRecords } from "../../dmarc/records/record/record-diff.ts";
import { organisationalDomain } from "../../foundation/mail/organisational-domain.ts";

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
