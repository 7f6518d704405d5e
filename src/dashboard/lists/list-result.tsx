import type { ComponentChildren } from "preact";
import { countGroups, GROUP_LABELS, ROW_GROUPS, type RowGroup } from "../../bulk/job-queries.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import type { SubStatus } from "../../verify/result.ts";
import { StackBar, type StackPart } from "../components/chart.tsx";
import { DownloadLink, Link } from "../components/inline.tsx";
import { countText, Num, numberText, Percent, percentText, Time } from "../components/figures.tsx";
import { Panel } from "../components/panel.tsx";
import { isOpenList } from "./list-facts.tsx";
import { Table } from "../components/table.tsx";

interface GroupWords {
  readonly kind: StackPart["kind"];
  /** What to do when mail is sent. */
  readonly meaning: string;
}

const GROUP_WORDS: Readonly<Record<RowGroup, GroupWords>> = {
  deliverable: { kind: "ok", meaning: "Send to these: their server accepts mail for them." },
  catch_all: {
    kind: "warn",
    meaning: "Send in small portions and watch the bounces: their server accepts every address, real or not.",
  },
  other_risky: {
    kind: "mild",
    meaning: "Send only to those you know: role accounts, disposable or suppressed addresses, full mailboxes.",
  },
  undeliverable: { kind: "bad", meaning: "Remove these: mail to them bounces." },
  unsettled: {
    kind: "unknown",
    meaning: "Wait with these: no server gave a usable reply. Verify them again another day.",
  },
};

/** Finished rows with an address by sub_status. */
export type ReasonCounts = ReadonlyArray<{ readonly subStatus: SubStatus; readonly rows: number }>;

/** The list of the same name before this one, and the share of its rows that was deliverable. */
export interface EarlierResult {
  readonly createdAtMs: number;
  readonly share: number;
}

interface ResultProps {
  readonly job: JobRow;
  readonly reasons: ReasonCounts;
  /** Null when there is none, or this list has not ended. */
  readonly earlier: EarlierResult | null;
}

/** By how many percentage points the share has changed: `+1.2`. */
const pointsText = (now: number, before: number): string => {
  const points = ((now - before) * 100).toFixed(1);
  return now >= before ? `+${points}` : points.replace("-", "−");
};

/** The share of a list that ended early says nothing about the list. */
const titleOf = (job: JobRow, share: number | null): string => {
  if (!isOpenList({ job }) && job.rowsFinished < job.rowsTotal)
    return `${numberText(job.rowsFinished)} of ${countText(job.rowsTotal, "row")} finished`;
  return share === null ? "Results" : `${percentText(share)} deliverable`;
};

interface GroupProps {
  readonly job: JobRow;
  readonly counts: Readonly<Record<RowGroup, number>>;
}

const sumOf = (counts: GroupProps["counts"]): number => ROW_GROUPS.reduce((sum, group) => sum + counts[group], 0);

/** Each group: its rows, what it means, and its file. */
const GroupTable = ({ job, counts }: GroupProps) => {
  const finished = sumOf(counts);
  return (
    <Table
      caption="Results by group"
      columns={[
        { title: "Group" },
        { title: "Rows", align: "end" },
        { title: "Share", align: "end" },
        { title: "Meaning", isText: true },
        { title: "File", isTitleHidden: true, align: "end" },
      ]}
      rows={ROW_GROUPS.map((group) => ({
        key: group,
        cells: [
          <span class="nowrap">
            <span class={`swatch ${GROUP_WORDS[group].kind}`} />{" "}
            <Link href={`/lists/${job.id}?show=${group}`}>{GROUP_LABELS[group]}</Link>
          </span>,
          <Num value={counts[group]} />,
          finished === 0 ? "" : <Percent part={counts[group]} whole={finished} />,
          GROUP_WORDS[group].meaning,
          counts[group] > 0 && (
            <DownloadLink href={`/lists/${job.id}/results.csv?show=${group}`}>
              CSV<span class="unseen"> of {GROUP_LABELS[group]}</span>
            </DownloadLink>
          ),
        ],
      }))}
    />
  );
};

/** What came out: a bar of the groups, and for each its rows, what it means and its file. */
export const ResultCard = ({
  job,
  reasons,
  earlier,
  children,
}: ResultProps & { readonly children?: ComponentChildren }) => {
  const counts = countGroups(reasons);
  const finished = sumOf(counts);
  const share = finished === 0 ? null : counts.deliverable / finished;
  const open = job.rowsTotal - job.rowsFinished;
  const parts: readonly StackPart[] = [
    ...ROW_GROUPS.map((group) => ({ ...GROUP_WORDS[group], title: GROUP_LABELS[group], value: counts[group] })),
    { title: isOpenList({ job }) ? "To do" : "Not verified", kind: "rest", value: open },
  ];
  return (
    <Panel
      title={titleOf(job, share)}
      aside={
        <span class="soft">
          of {countText(finished, "finished row")} with an address
          {earlier !== null && share !== null && (
            <>
              ;{" "}
              <Link href={`/lists/${job.id}?tab=compare`}>
                {pointsText(share, earlier.share)} points since <Time atMs={earlier.createdAtMs} style="day" />
              </Link>
            </>
          )}
        </span>
      }
      isFlush
    >
      <div class="panel-body">
        {children}
        <StackBar parts={parts} hasLegend={false} />
      </div>
      <GroupTable job={job} counts={counts} />
    </Panel>
  );
};
