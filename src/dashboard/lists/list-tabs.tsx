import { listTitle } from "../../bulk/attention.ts";
import type { Comparison } from "../../bulk/comparisons.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import type { ShownTrouble, Trouble } from "../../bulk/results/host-troubles.ts";
import { type Change, CHANGES } from "../../bulk/results/schemas.ts";
import type { Preview } from "../../bulk/arrival/preview.ts";
import { countText, exactText, Num, numberText } from "../components/figures.tsx";
import { Button, GetForm, SelectField } from "../components/form.tsx";
import { Badge, DownloadLink, type Kind, Link } from "../components/inline.tsx";
import { Columns, Empty, Panel, Row, Rows } from "../components/panel.tsx";
import { Mono } from "../components/copy.tsx";
import { Table } from "../components/table.tsx";
import { maskUrl } from "../../notifications/channels/channels.ts";
import { usePage } from "../visit.ts";
import { wordsOfReason } from "../components/verification.tsx";
import { fileText, encodingName, type ListFacts } from "./list-facts.tsx";
import type { ReasonCounts } from "./list-result.tsx";

/** The parts of the page of a list, below its results. */
export const LIST_TABS = ["rows", "hosts", "compare", "about"] as const;
export type ListTab = (typeof LIST_TABS)[number];

const TAB_WORDS: Readonly<Record<ListTab, string>> = {
  rows: "Rows",
  hosts: "Mail hosts",
  compare: "Compare",
  about: "About",
};

export const ListTabs = ({ jobId, current }: { readonly jobId: string; readonly current: ListTab }) => (
  <nav class="tabs" aria-label="Parts of this list" id="tabs">
    {LIST_TABS.map((tab) => (
      <Link key={tab} href={`/lists/${jobId}${tab === "rows" ? "" : `?tab=${tab}`}`} isCurrent={tab === current}>
        {TAB_WORDS[tab]}
      </Link>
    ))}
  </nav>
);

/** The reasons of the results, each with its rows. */
const ReasonsPanel = ({ job, reasons }: Pick<AboutProps, "job" | "reasons">) => (
  <Panel title="Why" isFlush>
    {reasons.length === 0 ? (
      <p class="panel-body soft">Nothing is finished yet.</p>
    ) : (
      <Rows>
        {reasons.map(({ subStatus, rows }) => (
          <Row
            key={subStatus}
            label={
              <Link href={`/lists/${job.id}?reason=${subStatus}`} title={wordsOfReason(subStatus).sentence}>
                {wordsOfReason(subStatus).label}
              </Link>
            }
          >
            <Num value={rows} />
          </Row>
        ))}
      </Rows>
    )}
  </Panel>
);

interface TroubleWords {
  readonly kind: Kind;
  readonly label: string;
  readonly meaning: string;
}

const TROUBLE_WORDS: Readonly<Record<Trouble, TroubleWords>> = {
  blocked: { kind: "bad", label: "Blocks us", meaning: "It refuses this service, whatever the address." },
  sender_rejected: {
    kind: "bad",
    label: "Refuses our sender",
    meaning: "It refuses the envelope sender of this service.",
  },
  tls_required: { kind: "bad", label: "Requires TLS", meaning: "It wants an encryption that could not be used." },
  protocol_error: { kind: "warn", label: "Invalid SMTP", meaning: "It does not follow the protocol." },
  unreachable: { kind: "warn", label: "Unreachable", meaning: "It accepts no connection." },
  timeout: { kind: "warn", label: "Timed out", meaning: "It did not reply in time." },
  rate_limited: {
    kind: "info",
    label: "Rate limit",
    meaning: "It accepts a few probes at a time: the list takes longer.",
  },
  greylisted: { kind: "info", label: "Greylisting", meaning: "It wants a second attempt some minutes later." },
  temporary: { kind: "info", label: "Temporary error", meaning: "It had a problem; the address was tried again." },
};

export interface HostsProps {
  readonly shown: readonly ShownTrouble[];
  readonly total: number;
}

const REPLY_CHARACTERS = 160;

const troubleRow = (jobId: string, { number, host, provider, reading, addresses, said }: ShownTrouble) => {
  const { kind, label, meaning } = TROUBLE_WORDS[reading];
  return {
    key: number,
    cells: [
      <>
        <Mono text={host} />
        {provider !== host && <span class="second">{provider}</span>}
      </>,
      <>
        <Badge kind={kind}>{label}</Badge>
        <span class="second">{meaning}</span>
      </>,
      <Link href={`/lists/${jobId}?host=${number}`}>
        {numberText(addresses)}
        <span class="unseen"> addresses at {host}</span>
      </Link>,
      said === null ? (
        <span class="soft">–</span>
      ) : (
        <span class="mono small wrap">{said.slice(0, REPLY_CHARACTERS)}</span>
      ),
    ],
  };
};

/** The mail hosts that refused or delayed probes for the list. */
export const HostsPanel = ({ jobId, shown, total }: HostsProps & { readonly jobId: string }) => (
  <Panel
    title="Mail hosts that refuse or delay us"
    aside={total > shown.length && `the first ${shown.length} of ${numberText(total)}`}
    isFlush
  >
    {shown.length === 0 ? (
      <Empty title="No mail host refused or delayed a probe">
        <p>Hosts that block this service, limit its rate or use greylisting are listed here with what they said.</p>
      </Empty>
    ) : (
      <Table
        caption="Mail hosts by the number of addresses"
        columns={[
          { title: "Mail host" },
          { title: "What it does", isText: true },
          { title: "Addresses", align: "end" },
          { title: "It said, for example", isText: true },
        ]}
        rows={shown.map((trouble) => troubleRow(jobId, trouble))}
      />
    )}
  </Panel>
);

const CHANGE_WORDS: Readonly<Record<Change, readonly [label: string, meaning: string]>> = {
  became_undeliverable: ["Became undeliverable", "Remove these before you send again."],
  recovered: ["Recovered", "Undeliverable then, deliverable now: you can send to these again."],
  changed: ["Changed otherwise", "Between deliverable and risky, or no longer certain."],
  new: ["New", "Only in this list."],
  gone: ["Gone", "Only in the earlier list."],
};

/** An earlier list to compare with. */
type EarlierList = Pick<JobRow, "id" | "name" | "createdAtMs">;

export interface CompareProps {
  /** Lists that are offered. */
  readonly choices: readonly EarlierList[];
  /** Null when there is no earlier list, or none is chosen. */
  readonly comparison: Pick<Comparison, "earlier" | "counts"> | null;
}

const choiceText = ({ name, createdAtMs }: EarlierList, timeZone: string): string =>
  `${exactText(createdAtMs, timeZone)}, ${listTitle(name)}`;

const ChangeTable = ({
  job,
  comparison: { earlier, counts },
}: { readonly job: JobRow } & { readonly comparison: NonNullable<CompareProps["comparison"]> }) => (
  <>
    <Table
      caption="What has changed"
      columns={[
        { title: "Change" },
        { title: "Addresses", align: "end" },
        { title: "Meaning", isText: true },
        { title: "File", isTitleHidden: true, align: "end" },
      ]}
      rows={CHANGES.map((change) => {
        const [label, meaning] = CHANGE_WORDS[change];
        return {
          key: change,
          cells: [
            label,
            <Num value={counts[change]} />,
            meaning,
            counts[change] > 0 && (
              <DownloadLink href={`/lists/${job.id}/comparison.csv?with=${earlier.id}&change=${change}`}>
                CSV<span class="unseen"> of {label}</span>
              </DownloadLink>
            ),
          ],
        };
      })}
    />
    <p class="panel-body soft">
      {countText(counts.unchanged, "address has", "addresses have")} the same verdict in both lists
      {counts.unfinished > 0 &&
        `; ${countText(counts.unfinished, "address", "addresses")} without a result in one of them`}
      .
    </p>
  </>
);

/** What has changed since an earlier list. */
export const ComparePanel = ({ job, choices, comparison }: CompareProps & { readonly job: JobRow }) => {
  const { timeZone } = usePage();
  return (
    <Panel title="Compare with an earlier list" isFlush>
      {choices.length === 0 ? (
        <Empty title="No other list to compare with">
          <p>Verify the same list again later: this page says then what became undeliverable, and what recovered.</p>
        </Empty>
      ) : (
        <>
          <GetForm action={`/lists/${job.id}`} class="filters">
            <input type="hidden" name="tab" value="compare" />
            <SelectField
              name="with"
              label="Earlier list"
              value={comparison?.earlier.id ?? ""}
              options={[
                ...(comparison === null ? [["", "Choose a list"] as const] : []),
                ...choices.map((choice) => [choice.id, choiceText(choice, timeZone)] as const),
              ]}
              isImmediate
            />
            <Button>Compare</Button>
          </GetForm>
          {comparison !== null && <ChangeTable job={job} comparison={comparison} />}
        </>
      )}
    </Panel>
  );
};

/** What is known of a list as a whole. */
export interface AboutProps extends ListFacts {
  /** Finished rows with an address by sub_status, most first. */
  readonly reasons: ReasonCounts;
  readonly format: Preview["format"];
  readonly credits: { readonly held: number; readonly charged: number; readonly released: number };
  readonly isTest: boolean;
}

/** How the list was read and what it cost. */
const FactsPanel = ({ job, format, credits, isTest }: AboutProps) => (
  <Panel title="About this list" isFlush>
    <Rows>
      <Row label="Rows">
        <Num value={job.rowsTotal} />
      </Row>
      <Row label="Distinct addresses">
        <Num value={job.addressesTotal} />
      </Row>
      {job.rowsEmpty > 0 && (
        <Row label="Rows without an address">
          <Num value={job.rowsEmpty} />
        </Row>
      )}
      {format !== null && <Row label="File">{fileText(format)}</Row>}
      {format !== null && format.type === "csv" && (
        <Row label="Encoding">{encodingName(format.encoding, format.encoding_assumed)}</Row>
      )}
      {format !== null && (
        <Row label="Column of addresses">
          {format.column.index + 1}
          {format.column.name !== null && ` “${format.column.name}”`}
        </Row>
      )}
      {!isTest && (
        <Row label="Credits charged">
          <Num value={credits.charged} />
        </Row>
      )}
      {!isTest && credits.released > 0 && (
        <Row label="Credits released">
          <Num value={credits.released} />
        </Row>
      )}
      {job.round > 0 && <Row label="Verified again">{countText(job.round, "time")}</Row>}
      {job.webhookUrl !== null && (
        <Row label="Webhook">
          <span class="mono">{maskUrl(job.webhookUrl)}</span>
        </Row>
      )}
      {job.notifyEmail !== null && <Row label="Mail at the end to">{job.notifyEmail}</Row>}
    </Rows>
  </Panel>
);

/** The list as a whole: its facts, and the reasons of its results. */
export const AboutList = (props: AboutProps) => (
  <Columns side={<ReasonsPanel {...props} />}>
    <FactsPanel {...props} />
  </Columns>
);
