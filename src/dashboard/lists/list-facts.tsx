import { listTitle, type PAUSED_SENTENCES } from "../../bulk/attention.ts";
import type { ListComparisons } from "../../bulk/comparisons.ts";
import type { JobQueries } from "../../bulk/job-queries.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import type { BulkJobs } from "../../bulk/jobs.ts";
import { StackBar, type StackPart } from "../components/chart.tsx";
import { Link, Badge, type Kind } from "../components/inline.tsx";
import type { RowMenuProps } from "../components/row-menu.tsx";
import { Table } from "../components/table.tsx";
import { Time, countText, Num, numberText, Percent } from "../components/figures.tsx";
import type { Owner } from "../../foundation/base/secrets.ts";
import { manualHint } from "../../foundation/base/manual-hint.ts";
import type { Preview } from "../../bulk/arrival/preview.ts";

/** The state of a list in a word. */
export interface StateWords {
  readonly kind: Kind;
  readonly label: string;
}

const STATES = {
  queued: { kind: "unknown", label: "Queued" },
  running: { kind: "info", label: "Running" },
  completed: { kind: "ok", label: "Completed" },
  cancelled: { kind: "unknown", label: "Cancelled" },
  failed: { kind: "bad", label: "Failed" },
} as const satisfies Record<string, StateWords>;

export type ShownStatus = keyof typeof STATES;

/** The statuses that lists can be filtered by, in words. */
export const STATUS_OPTIONS: ReadonlyArray<readonly [value: string, text: string]> = [
  ["", "Every status"],
  ...Object.entries(STATES).map(([status, { label }]) => [status, label] as const),
];

/** Why a list is paused, as in the job object. */
export type PauseReason = keyof typeof PAUSED_SENTENCES;

/** The words for a job; an outage pauses it. */
export const stateWords = (status: string, pausedReason: PauseReason | null): StateWords => {
  if (pausedReason !== null) return { kind: "warn", label: "Paused" };
  return Object.hasOwn(STATES, status) ? STATES[status as ShownStatus] : { kind: "unknown", label: status };
};

const ENCODING_NAMES = {
  "utf-8": "UTF-8",
  "windows-1252": "Western European (Windows-1252)",
  "iso-8859-15": "Western European (ISO 8859-15)",
  macintosh: "Western European (Mac Roman)",
  "windows-1250": "Central European (Windows-1250)",
  "iso-8859-2": "Central European (ISO 8859-2)",
  "windows-1251": "Cyrillic (Windows-1251)",
  "koi8-r": "Russian (KOI8-R)",
  "koi8-u": "Ukrainian (KOI8-U)",
  "windows-1253": "Greek (Windows-1253)",
  "windows-1254": "Turkish (Windows-1254)",
  "windows-1257": "Baltic (Windows-1257)",
  "windows-1258": "Vietnamese (Windows-1258)",
  "windows-1255": "Hebrew (Windows-1255)",
  "windows-1256": "Arabic (Windows-1256)",
  "windows-874": "Thai (Windows-874)",
  shift_jis: "Japanese (Shift_JIS)",
  "euc-jp": "Japanese (EUC-JP)",
  gb18030: "Chinese, simplified (GB 18030)",
  big5: "Chinese, traditional (Big5)",
  "euc-kr": "Korean (EUC-KR)",
  "utf-16le": "UTF-16, little endian",
  "utf-16be": "UTF-16, big endian",
} as const satisfies Record<NonNullable<Preview["format"]>["encoding"], string>;

export const encodingName = (encoding: keyof typeof ENCODING_NAMES, isAssumed: boolean): string =>
  `${ENCODING_NAMES[encoding]}${isAssumed ? " (assumed)" : ""}`;

/** The encodings that a file can be read in. */
export const ENCODING_OPTIONS: ReadonlyArray<readonly [value: string, text: string]> = [
  ["", "Detect it"],
  ...Object.entries(ENCODING_NAMES),
];

const SEPARATORS = { ",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars" } as const;

export const separatorName = (delimiter: keyof typeof SEPARATORS | null): string =>
  delimiter === null ? "one column" : `separated by ${SEPARATORS[delimiter]}`;

/** What decides results in test mode. */
export const TEST_NAMES_TEXT = `In test mode nothing is charged and no mail server is contacted: the name before the @ decides the result, such as mailbox_not_found@any.example. Every other name is deliverable; ${manualHint("verify-an-address#with-a-test-key")} has the table.`;

/** What kind of file a list was. */
export const fileText = ({ type, sheet, delimiter }: NonNullable<Preview["format"]>): string => {
  if (type === "csv") return `CSV, ${separatorName(delimiter)}`;
  return sheet === null ? "Excel workbook" : `Excel workbook, sheet “${sheet}”`;
};

/** "about 12 minutes left". */
export const timeLeftText = (seconds: number): string => {
  if (seconds < 60) return `about ${countText(seconds, "second")} left`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `about ${countText(minutes, "minute")} left`;
  const hours = Math.round(minutes / 60);
  return hours < 48
    ? `about ${countText(hours, "hour")} left`
    : `about ${countText(Math.round(hours / 24), "day")} left`;
};

/** "24 a second", "12 a minute". */
export const rateText = (perSecond: number): string => {
  const [value, unit] = perSecond >= 1 ? [perSecond, "second"] : [perSecond * 60, "minute"];
  return `${value >= 10 ? countText(Math.round(value), "address", "addresses") : `${value.toFixed(1).replace(/\.0$/, "")} ${value === 1 ? "address" : "addresses"}`} a ${unit}`;
};

/** The number of a row as people count: from 1. */
export const rowNumber = (rowIndex: number): number => rowIndex + 1;

/** The use cases behind the pages of lists. */
export interface ListUseCases {
  readonly bulk: BulkJobs;
  readonly comparisons: ListComparisons;
  readonly queries: JobQueries;
  /** Credits charged in the calendar month, in UTC. */
  readonly creditsThisMonth: (owner: Owner) => Promise<number>;
  /** Who started a job, by its `keyId`: the address of a user or the name of a key. */
  readonly starterName: (keyId: string) => string;
}

/** A job as the pages show it. */
export const listFacts = ({ bulk, starterName }: ListUseCases, job: JobRow): ListFacts => {
  const { verdicts, estimated_seconds_left: secondsLeft, paused_reason: pausedReason } = bulk.describe(job);
  return { job, verdicts, secondsLeft, pausedReason, startedBy: starterName(job.keyId) };
};

/** Whether a list has not ended. */
export const isOpenList = ({ job }: Pick<ListFacts, "job">): boolean =>
  job.status === "running" || job.status === "queued";

/** A list as its job object says, and who started it. */
export interface ListFacts {
  readonly job: JobRow;
  readonly verdicts: { readonly deliverable: number; readonly risky: number; readonly undeliverable: number };
  readonly secondsLeft: number | null;
  readonly pausedReason: PauseReason | null;
  readonly startedBy: string;
}

/** The verdicts of a list as the parts of its bar; `rest`: what is not finished. */
const verdictParts = ({ verdicts, job }: Pick<ListFacts, "verdicts" | "job">): StackPart[] => [
  { title: "Deliverable", kind: "ok", value: verdicts.deliverable },
  { title: "Risky", kind: "warn", value: verdicts.risky },
  { title: "Undeliverable", kind: "bad", value: verdicts.undeliverable },
  ...(job.rowsEmpty > 0 ? [{ title: "Without an address", kind: "unknown" as const, value: job.rowsEmpty }] : []),
  ...(job.rowsFinished < job.rowsTotal
    ? [{ title: "To do", kind: "rest" as const, value: job.rowsTotal - job.rowsFinished }]
    : []),
];

const Progress = ({ job, verdicts, secondsLeft }: ListFacts) => {
  const isRunning = isOpenList({ job });
  // The share of a few rows says nothing about the list.
  const isStopped = !isRunning && job.rowsFinished < job.rowsTotal;
  return (
    <>
      <StackBar parts={verdictParts({ job, verdicts })} hasLegend={false} />
      <span class="second">
        {isRunning && (
          <>
            <Percent part={job.addressesFinished} whole={job.addressesTotal} />
            {secondsLeft !== null && `, ${timeLeftText(secondsLeft)}`}
          </>
        )}
        {isStopped && `${numberText(job.rowsFinished)} of ${countText(job.rowsTotal, "row")} finished`}
        {!isRunning && !isStopped && (
          <>
            <Percent part={verdicts.deliverable} whole={job.rowsFinished - job.rowsEmpty} /> deliverable
          </>
        )}
      </span>
    </>
  );
};

const columns = [
  { title: "List", isMain: true },
  { title: "Status" },
  { title: "Results" },
  { title: "Addresses", align: "end" },
  { title: "Started" },
] as const;

const menuOf = ({ id, name, status }: JobRow): RowMenuProps => {
  const isOpen = status === "queued" || status === "running";
  return {
    about: listTitle(name),
    acts: [
      { text: "Download …", icon: "download", href: `/lists/${id}?confirm=download` },
      isOpen
        ? { text: "Cancel …", icon: "x", href: `/lists/${id}?confirm=cancel` }
        : { text: "Delete …", icon: "trash-2", href: `/lists/${id}?confirm=delete` },
    ],
  };
};

/** The lists of an account, one a row. */
export const ListTable = ({ lists }: { readonly lists: readonly ListFacts[] }) => (
  <Table
    caption="Lists, newest first"
    columns={columns}
    rows={lists.map((facts) => {
      const { job, pausedReason, startedBy } = facts;
      const { kind, label } = stateWords(job.status, pausedReason);
      return {
        key: job.id,
        cells: [
          <>
            <Link href={`/lists/${job.id}`} class="plain clamp">
              {listTitle(job.name)}
            </Link>
            <span class="second">{countText(job.rowsTotal, "row")}</span>
          </>,
          <Badge kind={kind}>{label}</Badge>,
          <Progress {...facts} />,
          <Num value={job.addressesTotal} />,
          <>
            <Time atMs={job.createdAtMs} />
            <span class="second clamp">by {startedBy}</span>
          </>,
        ],
        menu: menuOf(job),
      };
    })}
  />
);
