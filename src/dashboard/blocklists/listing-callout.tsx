import { hostOf, wayOut } from "../../blocklist/attention.ts";
import type { ListingView } from "../../blocklist/listings.ts";
import { Callout } from "../components/panel.tsx";
import { Button, Field, PostForm, SelectField, TextAreaField } from "../components/form.tsx";
import { Mono } from "../components/copy.tsx";
import { OutsideLink } from "../components/link.tsx";
import { durationText, Time } from "../components/time.tsx";
import { usePage } from "../visit.ts";
import { kindOfSeverity } from "./words.tsx";
import type { ComponentChildren } from "preact";

/** What the list returned at the last check. */
export interface ListResponseFacts {
  readonly codes: readonly string[];
  readonly text: string | null;
}

interface ListingCalloutProps {
  /** Of the target, or of the range. */
  readonly targetId: string;
  readonly listing: ListingView;
  readonly response: ListResponseFacts | null;
  /** Addresses of a range are annotated and muted with the range. */
  readonly isMember: boolean;
}

const MINUTE_MS = 60_000;

export const MUTE_DAYS: ReadonlyArray<readonly [value: string, text: string]> = [
  ["1", "for a day"],
  ["7", "for a week"],
  ["30", "for 30 days"],
  ["never", "until I unmute it"],
];

/** One listing: what it means, how it ends, and what can be done about it. */
export const ListingCallout = ({ targetId, listing, response, isMember }: ListingCalloutProps) => {
  const { nowMs } = usePage();
  const { severity, meaning, since, acknowledged, note } = listing;
  const sinceMs = Date.parse(since);
  return (
    <Callout
      kind={acknowledged === null ? kindOfSeverity(severity) : "unknown"}
      label={acknowledged === null ? "Listed" : "Acknowledged"}
      title={titleOf(listing, nowMs - sinceMs)}
      aside={severity === null ? undefined : `${severity} severity`}
      actions={<ListingActions {...{ targetId, listing, isMember }} />}
    >
      <p>
        {meaning} {wayOut(listing)}
      </p>
      <p class="small">
        Since <Time atMs={sinceMs} style="full" />, last seen <Time atMs={Date.parse(listing.last_seen_at)} />.
        {response !== null && response.codes.length > 0 && (
          <>
            {" "}
            The list returned <Mono text={response.codes.join(", ")} />
            {response.text === null ? "." : <>: “{response.text}”.</>}
          </>
        )}
      </p>
      <Marks listing={listing} />
      {note !== null && (
        <p class="note">
          {note.text}
          <span class="second">
            {note.by ?? "somebody"}, <Time atMs={Date.parse(note.at)} />
          </span>
        </p>
      )}
    </Callout>
  );
};

const titleOf = ({ name, address }: ListingView, forMs: number): string => {
  const duration = forMs < MINUTE_MS ? "" : ` for ${durationText(forMs)}`;
  return `${address === null ? "On" : `${address} on`} ${name}${duration}`;
};

const Marks = ({ listing: { acknowledged, delisting_requested } }: { readonly listing: ListingView }) => {
  const marks = [
    ["Removal requested", delisting_requested],
    ["Acknowledged", acknowledged],
  ] as const;
  return (
    <>
      {marks.map(([text, mark]) =>
        mark === null ? null : (
          <p key={text} class="small">
            {text} by {mark.by ?? "somebody"}, <Time atMs={Date.parse(mark.at)} />.
          </p>
        ),
      )}
    </>
  );
};

const ListingActions = ({ targetId, listing, isMember }: Omit<ListingCalloutProps, "response">) => {
  const { id, delist_url, delisting_requested, acknowledged, note, name } = listing;
  const path = `/blocklists/${targetId}/listings/${encodeURIComponent(id)}`;
  const host = delist_url === null ? null : hostOf(delist_url);
  return (
    <>
      {delist_url !== null && host !== null && (
        <OutsideLink href={delist_url} class="button">
          Request removal at {host}
        </OutsideLink>
      )}
      <PostForm action={`${path}/requested`}>
        <Button name="is" value={delisting_requested === null ? "yes" : "no"}>
          {delisting_requested === null ? "Removal requested" : "Not requested after all"}
        </Button>
      </PostForm>
      <PostForm action={`${path}/acknowledged`}>
        <Button name="is" value={acknowledged === null ? "yes" : "no"}>
          {acknowledged === null ? "Acknowledge" : "Needs attention again"}
        </Button>
      </PostForm>
      <MoreForm label={note === null ? "Add a note" : "Edit the note"} action={`${path}/note`}>
        <TextAreaField
          name="note"
          label={`Note about ${name}`}
          value={note?.text ?? null}
          rows={3}
          hint="At most 1,000 characters. Leave it empty to remove the note."
        />
        <div class="actions">
          <Button kind="main">Save the note</Button>
        </div>
      </MoreForm>
      {!isMember && (
        <MoreForm label="Mute this listing" action={`${path}/mute`}>
          <SelectField name="days" label={`Mute ${name}`} value="7" options={MUTE_DAYS} />
          <Field name="reason" label="Why" hint="For those who come after you." />
          <p class="hint">
            The listing is removed from the state of this target, and nobody is notified about it. Afterwards it is
            checked again.
          </p>
          <div class="actions">
            <Button kind="main" icon="bell-off">
              Mute
            </Button>
          </div>
        </MoreForm>
      )}
    </>
  );
};

/** A form behind a button, which is open when it is shown again with what is wrong with it. */
export const MoreForm = ({
  label,
  action,
  children,
}: {
  readonly label: string;
  readonly action: string;
  readonly children: ComponentChildren;
}) => (
  <details class="more" open={usePage().form?.action === action}>
    <summary class="button">{label}</summary>
    <PostForm action={action} class="form">
      {children}
    </PostForm>
  </details>
);
