import type { IngestionRow } from "../dmarc/reports/ingest/ingestion-store.ts";
import type { ReportOutcome } from "../dmarc/reports/report/report.ts";
import { conclusionMessage } from "../dmarc/reports/ingest/ingestion-finding.ts";
import { NO_SUCH_FILE, type ReportPath } from "./dmarc-files.ts";
import type { Io } from "./io.ts";
import { table } from "./terminal-text.ts";
import { counted, progressBar, showWhile } from "./progress.ts";

/** Problems that are listed; the rest is counted. */
const PROBLEMS_MAX = 20;

/** Progress of an import. */
export interface ImportState {
  readonly files: number;
  readonly filesDone: number;
  readonly bytes: number;
  readonly bytesDone: number;
  /** Mails and files by outcome; a mailbox holds many. */
  readonly outcomes: Readonly<Record<ReportOutcome, number>>;
  /** The same by outcome and reason, such as `rejected no_report`. */
  readonly reasons: ReadonlyMap<string, number>;
  /** What was not counted, or not whole: the first of these mails and files, with what is to be said. */
  readonly problems: readonly string[];
  /** All of them. */
  readonly problemCount: number;
}

/** Counts the outcomes of an import. */
export const createImportTally = (files: readonly ReportPath[]) => {
  const outcomes: Record<ReportOutcome, number> = { stored: 0, duplicate: 0, empty: 0, quarantined: 0, rejected: 0 };
  const reasons = new Map<string, number>();
  const problems: string[] = [];
  let problemCount = 0;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  let filesDone = 0;
  let bytesDone = 0;

  const count = (outcome: ReportOutcome, reason: string | null): string => {
    outcomes[outcome] += 1;
    const key = reason === null ? outcome : `${outcome} ${reason}`;
    reasons.set(key, (reasons.get(key) ?? 0) + 1);
    return key;
  };
  const list = (text: string): void => {
    problemCount += 1;
    if (problems.length < PROBLEMS_MAX) problems.push(text);
  };

  return {
    add: (input: string, row: Pick<IngestionRow, "outcome" | "reason" | "findings">): void => {
      const key = count(row.outcome ?? "rejected", row.reason);
      if (row.outcome === "stored" && hasUnreadRows(row)) list(`${input}: ${conclusionMessage(row)}`);
      else if (row.outcome === null || row.outcome === "rejected" || row.outcome === "quarantined")
        list([`${input}: ${key}`, conclusionMessage(row)].join(". ").replace(/\. $/, ""));
    },
    /** Counts a file that could not be read. */
    fail: (input: string, problem: string): void => {
      const key = count("rejected", problem);
      list(problem === NO_SUCH_FILE ? `${input}: ${key}. No such file.` : `${input}: ${key}`);
    },
    finishFile: ({ size }: ReportPath): void => {
      filesDone += 1;
      bytesDone += size;
    },
    look: (): ImportState => ({
      ...{ files: files.length, filesDone, bytes, bytesDone },
      ...{ outcomes, reasons, problems, problemCount },
    }),
  };
};

/** A look at the text: millions of reports have none. */
const hasUnreadRows = ({ findings }: Pick<IngestionRow, "findings">) => findings?.includes('"unread_rows"') === true;

export type ImportTally = ReturnType<typeof createImportTally>;

const total = ({ outcomes }: ImportState): number => Object.values(outcomes).reduce((sum, count) => sum + count, 0);

/** The progress of an import in one line: `[#####     ]  50%  500 of 1,000 files, 512 reports stored`. */
export const importLine = (state: ImportState): string => {
  const { files, filesDone, bytes, bytesDone, outcomes } = state;
  const read = `${filesDone.toLocaleString("en")} of ${counted(files, "file", "files")}`;
  return `${progressBar(bytesDone, bytes)}  ${read}, ${outcomes.stored.toLocaleString("en")} stored`;
};

/** The outcomes with their reasons, the most frequent first. */
export const tallyText = (state: ImportState): string => {
  const rows = [...state.reasons]
    .toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .map(([key, count]) => {
      const [outcome = "", ...reason] = key.split(" ");
      return [outcome, count.toLocaleString("en"), reason.join(" ")];
    });
  return table(["OUTCOME", "COUNT", "REASON"], [...rows, ["total", total(state).toLocaleString("en"), ""]]);
};

/** The problems of an import, and what to do about them. */
export const problemsText = ({ problems, problemCount, reasons }: ImportState): string[] => {
  const more = problemCount - problems.length;
  const isForeign = reasons.has("quarantined foreign_domain");
  return [
    ...problems,
    ...(more > 0 ? [`… and ${more.toLocaleString("en")} more`] : []),
    ...(isForeign
      ? [
          "Reports about domains that are not enrolled are kept. Enroll the domain, then run `postwarden dmarc retry --all`.",
        ]
      : []),
  ];
};

/** Shows the progress of an import until the returned function is called. */
export const showImport = (io: Io, { look }: ImportTally): (() => void) => showWhile(io, () => importLine(look()));
