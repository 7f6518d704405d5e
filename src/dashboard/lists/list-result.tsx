import type { ComponentChildren } from "preact";
import { groupOf, ROW_GROUPS, type RowChoice, type RowGroup } from "../../bulk/job-queries.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import type { SubStatus } from "../../verify/result.ts";
import { StackBar, type StackPart } from "../components/chart.tsx";
import { Button, CheckField, GetForm, SelectField } from "../components/form.tsx";
import { ButtonLink, DownloadLink, Link } from "../components/inline.tsx";
import { countText, Num, Percent, percentText } from "../components/figures.tsx";
import { Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";

interface GroupWords {
  readonly label: string;
  readonly kind: StackPart["kind"];
  /** What it means for sending. */
  readonly meaning: string;
}

const GROUP_WORDS: Readonly<Record<RowGroup, GroupWords>> = {
  deliverable: { label: "Deliverable", kind: "ok", meaning: "The server accepts mail for these: safe to send." },
  catch_all: {
    label: "Catch-all",
    kind: "warn",
    meaning: "The server accepts every address, so some of these will bounce.",
  },
  other_risky: {
    label: "Other risky",
    kind: "mild",
    meaning: "Role accounts, disposable or suppressed addresses, full mailboxes. Send only if you know them.",
  },
  undeliverable: { label: "Undeliverable", kind: "bad", meaning: "Do not send: these will bounce." },
  unsettled: {
    label: "Unsettled",
    kind: "unknown",
    meaning: "No server gave a usable reply. Verify them again another day.",
  },
};

/** Finished rows with an address by sub_status. */
export type ReasonCounts = ReadonlyArray<{ readonly subStatus: SubStatus; readonly rows: number }>;

/** The finished rows with an address by group. */
const countGroups = (reasons: ReasonCounts): Readonly<Record<RowGroup, number>> => {
  const counts = { deliverable: 0, catch_all: 0, other_risky: 0, undeliverable: 0, unsettled: 0 };
  for (const { subStatus, rows } of reasons) counts[groupOf(subStatus)] += rows;
  return counts;
};

interface ResultProps {
  readonly job: JobRow;
  readonly reasons: ReasonCounts;
}

/** What came out: a bar of the groups, and for each its rows, what it means and its file. */
export const ResultCard = ({ job, reasons, children }: ResultProps & { readonly children?: ComponentChildren }) => {
  const counts = countGroups(reasons);
  const finished = ROW_GROUPS.reduce((sum, group) => sum + counts[group], 0);
  const open = job.rowsTotal - job.rowsFinished;
  const parts: readonly StackPart[] = [
    ...ROW_GROUPS.map((group) => ({ ...GROUP_WORDS[group], title: GROUP_WORDS[group].label, value: counts[group] })),
    { title: "To do", kind: "rest", value: open },
  ];
  return (
    <Panel
      title={finished === 0 ? "Results" : `${percentText(counts.deliverable / finished)} deliverable`}
      aside={<span class="soft">of {countText(finished, "finished row")} with an address</span>}
      isFlush
    >
      <div class="panel-body">
        {children}
        <StackBar parts={parts} hasLegend={false} />
      </div>
      <Table
        caption="Results by group"
        isStacked
        columns={[
          { title: "Group" },
          { title: "Rows", align: "end" },
          { title: "Share", align: "end" },
          { title: "Meaning" },
          { title: "File", isTitleHidden: true, align: "end" },
        ]}
        rows={ROW_GROUPS.map((group) => ({
          key: group,
          cells: [
            <span class="nowrap">
              <span class={`swatch ${GROUP_WORDS[group].kind}`} />{" "}
              <Link href={`/lists/${job.id}?show=${group}`}>{GROUP_WORDS[group].label}</Link>
            </span>,
            <Num value={counts[group]} />,
            finished === 0 ? "" : <Percent part={counts[group]} whole={finished} />,
            GROUP_WORDS[group].meaning,
            counts[group] > 0 && (
              <DownloadLink href={`/lists/${job.id}/results.csv?show=${group}`}>
                CSV<span class="unseen"> of {GROUP_WORDS[group].label}</span>
              </DownloadLink>
            ),
          ],
        }))}
      />
    </Panel>
  );
};

/** The rows that a filter can show, in words. */
export const SHOW_OPTIONS: ReadonlyArray<readonly [value: RowChoice | "", text: string]> = [
  ["", "All rows"],
  ...ROW_GROUPS.map((group) => [group, GROUP_WORDS[group].label] as const),
];

interface DownloadProps {
  readonly job: JobRow;
  /** The filter in force on the page. */
  readonly shown: {
    readonly show?: string | undefined;
    readonly reason?: string | undefined;
    readonly q?: string | undefined;
  };
}

/** Chooses which rows are downloaded, in which columns. It opens from the button at the head of the page. */
export const DownloadPanel = ({ job, shown: { show, reason, q } }: DownloadProps) => (
  <Panel title="Download" id="download" aside={<ButtonLink href={`/lists/${job.id}`}>Close</ButtonLink>}>
    <GetForm action={`/lists/${job.id}/results.csv`} class="form">
      <div class="form">
        <SelectField name="show" label="Rows" value={show ?? "deliverable"} options={SHOW_OPTIONS} />
        <SelectField
          name="preset"
          label="For"
          options={[
            ["", "A spreadsheet (CSV)"],
            ["mailchimp", "Mailchimp"],
            ["brevo", "Brevo"],
            ["hubspot", "HubSpot"],
            ["listmonk", "listmonk"],
          ]}
          hint="Newsletter tools get the columns that their import recognizes."
        />
        <SelectField
          name="columns"
          label="Columns"
          options={[
            ["all", "My columns and the results"],
            ["uploaded", "My columns"],
            ["address", "Addresses only"],
          ]}
        />
      </div>
      <CheckField name="distinct" value="true" label="Each address once" isChecked />
      <CheckField
        name="clean"
        value="true"
        label="Cleaned addresses"
        hint="Without the names and mailto: of their cells."
        isChecked
      />
      {reason !== undefined && <input type="hidden" name="reason" value={reason} />}
      {q !== undefined && <input type="hidden" name="q" value={q} />}
      {(reason ?? q) !== undefined && <p class="soft">Only the rows that the table shows.</p>}
      <Button kind="main" icon="download">
        Download
      </Button>
    </GetForm>
  </Panel>
);
