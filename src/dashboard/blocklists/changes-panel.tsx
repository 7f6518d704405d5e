import type { TargetChangeView, WebhookOutcome } from "../../blocklist/target-history.ts";
import { Badge } from "../components/badge.tsx";
import { Empty } from "../components/empty.tsx";
import { Link } from "../components/link.tsx";
import { Panel } from "../components/panel.tsx";
import { countText } from "../components/number.tsx";
import { Table } from "../components/table.tsx";
import { durationText, Time } from "../components/time.tsx";

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
