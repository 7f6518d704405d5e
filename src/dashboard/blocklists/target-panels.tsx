import type { TargetChangeView, WebhookOutcome, ListTimeline } from "../../blocklist/target-history.ts";
import { Badge } from "../components/badge.tsx";
import { Empty, Panel } from "../components/panel.tsx";
import { Link } from "../components/link.tsx";
import { countText } from "../components/number.tsx";
import { Table } from "../components/table.tsx";
import { durationText, Time } from "../components/time.tsx";
import type { TargetRow } from "../../blocklist/store.ts";
import { stateOfTarget } from "../../blocklist/target-table.ts";
import { StateBadge } from "./words.tsx";
import type { MuteView } from "../../blocklist/muting.ts";
import { Button, PostForm } from "../components/form.tsx";

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

/** The latest listings and delistings of a target. */
export const ChangesPanel = ({
  changes,
  historyPath,
}: {
  readonly changes: readonly TargetChangeView[];
  readonly historyPath: string;
}) => (
  <Panel title="Changes" aside={<Link href={historyPath}>All checks</Link>} isFlush>
    {changes.length === 0 ? (
      <Empty title="No change yet">
        <p>Every listing and delisting will be here, with how you were notified.</p>
      </Empty>
    ) : (
      <Table
        caption="Changes, the newest first"
        columns={[{ title: "When" }, { title: "What" }, { title: "Notified" }]}
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
    )}
  </Panel>
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
            { title: "Address" },
            { title: "Listed on" },
            { title: "Checked", isWide: true },
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

/** The lists that say nothing about this target now, and what would help. */
export const UnbelievedPanel = ({ target, range, timelines }: SidePanelProps) => {
  const unknown = timelines.filter(({ now, isMuted }) => now === "unknown" && !isMuted);
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
export const MutedPanel = ({ target, range, mutes, names }: SidePanelProps) => (
  <Panel title="Muted" isFlush>
    {mutes.length === 0 ? (
      <p class="panel-body soft">Nothing is muted{range === null ? "" : " for its range"}.</p>
    ) : (
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
    )}
  </Panel>
);
