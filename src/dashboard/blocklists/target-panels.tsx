import type { TargetChangeView, WebhookOutcome, ListTimeline } from "../../blocklist/target-history.ts";
import { Callout, Empty, Panel } from "../components/panel.tsx";
import { Link, OutsideLink, Badge } from "../components/inline.tsx";
import { Table } from "../components/table.tsx";
import { durationText, Time, countText } from "../components/figures.tsx";
import type { TargetRow } from "../../blocklist/store.ts";
import { stateOfTarget } from "../../blocklist/target-table.ts";
import { kindOfSeverity, StateBadge } from "./common.tsx";
import type { MuteView } from "../../blocklist/muting.ts";
import { Button, Field, MoreForm, PostForm, SelectField, TextAreaField } from "../components/form.tsx";
import { hostOf, wayOut } from "../../blocklist/attention.ts";
import type { ListingView } from "../../blocklist/listings.ts";
import { Mono } from "../components/copy.tsx";
import { usePage } from "../visit.ts";

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

const WEBHOOK_WORDS: Readonly<Record<WebhookOutcome, string>> = {
  delivered: "webhook delivered",
  waiting: "webhook waiting",
  failed: "webhook failed",
  feed_only: "below your alert threshold",
  none: "no webhook",
};

const REASON_WORDS: Readonly<Record<NonNullable<TargetChangeView["reason"]>, string | null>> = {
  observed: null,
  list_retired: "the list is not queried any more",
  list_muted: "muted",
  expired: "not repeated by the list for 48 hours",
};

/** How a change was sent, in words; empty when that is not known any more. */
export const notifiedText = ({ webhook, mailedTo, reason }: TargetChangeView): string => {
  const isQuiet = webhook === "feed_only" && (mailedTo ?? 0) === 0;
  if (reason === "list_muted") return "muted by somebody";
  const parts = [
    webhook === null || (webhook === "feed_only" && !isQuiet) ? null : WEBHOOK_WORDS[webhook],
    mailedTo === null || isQuiet ? null : mailedTo === 0 ? "no mail" : `mail to ${countText(mailedTo, "recipient")}`,
  ];
  return parts.filter((text) => text !== null).join(", ");
};

/** Changes that stand open; earlier ones are folded away. */
const CHANGES_OPEN = 3;

/** The latest listings and delistings of a target. */
export const ChangesPanel = ({
  changes,
  historyPath,
}: {
  readonly changes: readonly TargetChangeView[];
  readonly historyPath: string;
}) => {
  const earlier = changes.slice(CHANGES_OPEN);
  return (
    <Panel title="Changes" aside={<Link href={historyPath}>All checks</Link>} isFlush>
      {changes.length === 0 ? (
        <Empty title="No change yet">
          <p>Every listing and delisting will be here, with how you were notified.</p>
        </Empty>
      ) : (
        <ChangeTable caption="Changes, the newest first" changes={changes.slice(0, CHANGES_OPEN)} />
      )}
      {earlier.length > 0 && (
        <details class="fold">
          <summary>{earlier.length} earlier</summary>
          <ChangeTable caption="Earlier changes, the newest first" changes={earlier} />
        </details>
      )}
    </Panel>
  );
};

const ChangeTable = ({
  caption,
  changes,
}: {
  readonly caption: string;
  readonly changes: readonly TargetChangeView[];
}) => (
  <Table
    caption={caption}
    columns={[{ title: "When" }, { title: "What", isText: true }, { title: "Notified" }]}
    rows={changes.map((change, at) => ({
      key: at,
      cells: [
        <Time key="at" atMs={change.atMs} style="full" />,
        <What key="what" change={change} />,
        <span key="sent" class="small">
          {notifiedText(change)}
        </span>,
      ],
    }))}
  />
);

const What = ({ change: { change, name, address, reason, sinceMs, atMs } }: { readonly change: TargetChangeView }) => {
  const why = reason === null ? null : REASON_WORDS[reason];
  const notes = [why, sinceMs === null ? null : `after ${durationText(atMs - sinceMs)}`].filter(
    (text) => text !== null,
  );
  const isMuted = reason === "list_muted";
  return (
    <>
      {change === "listed" ? (
        <Badge kind="bad">Listed</Badge>
      ) : (
        <Badge kind={isMuted ? "unknown" : "ok"} {...(isMuted ? { icon: "bell-off" } : {})}>
          {isMuted ? "Muted" : "Delisted"}
        </Badge>
      )}{" "}
      {change === "listed" ? "on" : "from"} {name}
      {address !== null && <span class="mono"> {address}</span>}
      {notes.length > 0 && <span class="second">{notes.join(", ")}</span>}
    </>
  );
};

const STATE_ORDER = ["listed", "unknown", "pending", "clean", "paused"] as const;
const MEMBERS_SHOWN_MAX = 256;

/** The addresses of a range, the worst first. */
export const MembersPanel = ({ members }: { readonly members: readonly TargetRow[] }) => {
  const sorted = members.toSorted(
    (a, b) =>
      STATE_ORDER.indexOf(stateOfTarget(a)) - STATE_ORDER.indexOf(stateOfTarget(b)) ||
      b.severityRank - a.severityRank ||
      a.id.localeCompare(b.id),
  );
  const counts = STATE_ORDER.map(
    (state) => [state, members.filter((row) => stateOfTarget(row) === state).length] as const,
  );
  const aside = counts.flatMap(([state, count]) => (count === 0 ? [] : [`${count} ${state}`])).join(" · ");
  return (
    <Panel title="Addresses" aside={aside} isFlush>
      {members.length === 0 ? (
        <Empty title="No address">
          <p>The addresses of this range are being removed.</p>
        </Empty>
      ) : (
        <Table
          caption="Addresses of the range, the worst first"
          columns={[
            { title: "State" },
            { title: "Address", isMain: true },
            { title: "Listed on" },
            { title: "Checked" },
          ]}
          rows={sorted.slice(0, MEMBERS_SHOWN_MAX).map((row) => ({
            key: row.id,
            cells: [
              <StateBadge key="state" target={row} />,
              <Link key="name" href={`/blocklists/${row.id}`} class="mono">
                {row.value}
              </Link>,
              row.listedOn.join(", "),
              row.lastCheckedAtMs === null ? "never" : <Time atMs={row.lastCheckedAtMs} />,
            ],
          }))}
        />
      )}
      {sorted.length > MEMBERS_SHOWN_MAX && (
        <p class="panel-body soft small">
          and {countText(sorted.length - MEMBERS_SHOWN_MAX, "address", "addresses")} in a better state
        </p>
      )}
    </Panel>
  );
};

interface SidePanelProps {
  readonly target: TargetRow;
  /** The range of an address: its lists are muted with the range. */
  readonly range: TargetRow | null;
  readonly timelines: readonly ListTimeline[];
  readonly mutes: readonly MuteView[];
  /** List or listing → name. */
  readonly names: ReadonlyMap<string, string>;
}

/** Whether a list says nothing about the target now, and somebody may want to do something about that. */
export const isUnbelieved = ({ now, isMuted }: ListTimeline): boolean => now === "unknown" && !isMuted;

/** The lists that say nothing about this target now, and what would help. */
export const UnbelievedPanel = ({ target, range, timelines }: SidePanelProps) => {
  const unknown = timelines.filter(isUnbelieved);
  if (unknown.length === 0) return null;
  return (
    <Panel title={`${countText(unknown.length, "list")} cannot be believed`} isFlush>
      <ul class="items plain">
        {unknown.map(({ list, name, reason, remedy }) => (
          <li key={list}>
            <h3>
              <Link href={`/blocklists/lists/${list}`}>{name}</Link>
            </h3>
            <p class="detail">
              {reason} {remedy !== null && <b>{remedy}</b>}
            </p>
            {range === null && (
              <PostForm action={`/blocklists/${target.id}/listings/${list}/mute`} class="detail">
                <input type="hidden" name="days" value="never" />
                <Button icon="bell-off" title={`Does not ask ${name} about ${target.value} any more`}>
                  Mute this list
                </Button>
              </PostForm>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
};

/** What is muted, by whom, why and until when. */
export const MutedPanel = ({ target, range, mutes, names }: SidePanelProps) =>
  mutes.length === 0 ? null : (
    <Panel title="Muted" isFlush>
      <ul class="items plain">
        {mutes.map(({ muted, order }) => (
          <li key={muted}>
            <h3>{names.get(muted) ?? muted}</h3>
            {range === null && (
              <PostForm action={`/blocklists/${target.id}/unmute`}>
                <Button name="muted" value={muted} icon="bell">
                  Unmute
                </Button>
              </PostForm>
            )}
            <p class="detail">
              {order === null ? (
                "Until somebody unmutes it."
              ) : (
                <>
                  {order.reason !== null && <>“{order.reason}” </>}
                  {order.untilMs === null ? (
                    "Until somebody unmutes it"
                  ) : (
                    <>
                      Until <Time atMs={order.untilMs} style="full" />
                    </>
                  )}
                  , by {order.by}, <Time atMs={order.atMs} />.
                </>
              )}
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  );
