import type { HistoryRow } from "../../dmarc/records/domains/domain-store.ts";
import { historyView } from "../../dmarc/records/domains/domain-view.ts";
import { Panel } from "../components/panel.tsx";
import { Pager } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { changeWords } from "./publication-words.ts";
import { RecordDiff } from "./record-text.tsx";

/** Entries of a page of the history. */
export const HISTORY_ROWS = 20;

const TRIGGERS = { enrolled: "when it was enrolled", scheduled: "scheduled check", manual: "check by a user" } as const;
const STATUSES = { pending: "pending", active: "active", action_required: "action required" } as const;

/** The history of a record: when it changed, and how. One row more than a page holds tells that there is a next one. */
export const RecordHistory = ({
  rows,
  isLater,
}: {
  readonly rows: readonly HistoryRow[];
  readonly isLater: boolean;
}) => {
  const shown = rows.slice(0, HISTORY_ROWS);
  const next = rows.length > HISTORY_ROWS ? (shown.at(-1)?.id ?? null) : null;
  return (
    <Panel title="History" isFlush>
      {shown.length === 0 ? (
        <p class="panel-body soft">Nothing was found yet. Each change of the record is noted here with its date.</p>
      ) : (
        <ol class="history">
          {shown.map((row, at) => (
            <Entry key={row.id} row={row} older={rows[at + 1]} />
          ))}
        </ol>
      )}
      <Pager next={next} isLater={isLater} />
    </Panel>
  );
};

const Entry = ({ row, older }: { readonly row: HistoryRow; readonly older: HistoryRow | undefined }) => {
  const { trigger, changes, status, previous_status, record } = historyView(row);
  const before = older === undefined ? null : historyView(older).record;
  return (
    <li>
      <div>
        <Time atMs={row.atMs} style="full" />
        <span class="second">{TRIGGERS[trigger]}</span>
      </div>
      <div>
        <b>{changeWords(changes)}</b>
        {status !== previous_status && (
          <span class="soft">
            {" "}
            · status {STATUSES[previous_status]} → {STATUSES[status]}
          </span>
        )}
        {record === null ? (
          <p class="soft small">No single record was published.</p>
        ) : before === null || before === record ? (
          <p class="record-diff mono">{record}</p>
        ) : (
          <RecordDiff before={before} after={record} />
        )}
      </div>
    </li>
  );
};
